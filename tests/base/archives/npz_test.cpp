// Archives of arrays as Python's zipfile writes them: what NumPy writes, byte by byte, stored and deflated.
#include "base/archives/npz.hpp"

#include <catch2/catch.hpp>

#include "base/archives/safetensors.hpp"
#include "base/error.hpp"
#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/run_program.hpp"

namespace draftproof {
namespace {

using testing::ProgramResult;
using testing::run_command;
using testing::run_draftproof;
using testing::TemporaryFolder;
using testing::write_whole_file;

// npy(descr, shape, data) as NumPy's format has it, and archives of such members.
const std::string kScript = R"py(
import struct, sys, zipfile
def npy(descr, shape, data, order="False"):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
def save(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in members.items():
            with z.open(name, "w", force_zip64=True) as f: f.write(data)
folder = sys.argv[1] + "/"
logits = npy("<f8", "(2, 3)", struct.pack("<6d", 0, 1, 2, 2, 1, 0))
good = {"target_logits.npy": logits, "top_p.npy": npy("<f8", "()", struct.pack("<d", 0.5)),
        "samples.npy": npy("<i8", "(4,)", struct.pack("<4q", 2, 2, 0, 0)),
        "group.npy": npy("<i8", "(4,)", struct.pack("<4q", 0, 0, 1, 1))}
save(folder + "stored.npz", good)
save(folder + "deflated.npz", good, zipfile.ZIP_DEFLATED)
bad = {"fortran": {"a.npy": npy("<f4", "(2, 1)", b"\0" * 8, "True")}, "objects": {"a.npy": npy("|O", "(1,)", b"\0" * 8)},
       "big_endian": {"a.npy": npy(">f4", "(1,)", b"\0" * 4)}, "short": {"a.npy": npy("<f4", "(3,)", b"\0" * 8)},
       "huge": {"a.npy": npy("<f4", "(99999999999999999999,)", b"")}, "overflow": {"a.npy": npy("<f4", "(4294967296, 4294967296)", b"")},
       "no_array": {"a.txt": b"x"}, "magic": {"a.npy": b"NUMPY" * 8}, "header": {"a.npy": b"\x93NUMPY\x01\x00\xff\xff{}"}}
for name, members in bad.items(): save(folder + name + ".npz", members)
open(folder + "cut.npz", "wb").write(open(folder + "stored.npz", "rb").read()[:200])
flipped = bytearray(open(folder + "stored.npz", "rb").read())
flipped[flipped.index(logits) + len(logits) - 12] ^= 1
open(folder + "flipped.npz", "wb").write(flipped)
)py";

bool write_archives(const TemporaryFolder& folder) {
  write_whole_file(folder.file("write.py"), kScript);
  const ProgramResult written = run_command({"python3", folder.file("write.py"), folder.path()});
  INFO(written.err);
  if (written.exit_code == 0) return true;
  CHECK(run_command({"sh", "-c", "command -v python3"}).exit_code != 0);
  WARN("SKIPPED: python3 is not installed");
  return false;
}

TEST_CASE("an archive of arrays is read as the tensors that it holds, stored or deflated") {
  const TemporaryFolder folder;
  if (!write_archives(folder)) return;
  for (const char* const name : {"stored.npz", "deflated.npz"}) {
    INFO(name);
    const SafetensorsFile file = SafetensorsFile::open(folder.file(name));
    CHECK(file.names().size() == 4);
    const TensorView logits = file.tensor("target_logits");
    CHECK(logits.dtype == DType::f64);
    CHECK(logits.shape == std::vector<std::uint64_t>{2, 3});
    CHECK(logits.as<double>()[2] == 2.0);
    CHECK(file.tensor("top_p").shape.empty());
    CHECK(file.tensor("samples").as<std::int64_t>()[1] == 2);
    // Top-p of 0.5, one number for both rows, leaves the one token of each that was drawn; four draws are too few.
    const ProgramResult audit = run_draftproof({"audit", folder.file(name)});
    INFO(audit.out << audit.err);
    CHECK(audit.exit_code == 4);
    CHECK(audit.out.find("4 draws, 2 distributions") != std::string::npos);
  }
}

TEST_CASE("what is no array of numbers in C order is an error that names the member") {
  const TemporaryFolder folder;
  if (!write_archives(folder)) return;
  const auto error = [&](const std::string& name) {
    return error_of(ErrorKind::input, [&] { SafetensorsFile::open(folder.file(name + ".npz")); });
  };
  for (const auto& [name, part] : {std::pair("fortran", "Fortran order; expected C order"),
                                   {"objects", "'|O'"},
                                   {"big_endian", "little-endian"},
                                   {"short", "8 bytes of data; expected shape [3] of F32"},
                                   {"huge", "99999999999999999999"},
                                   {"overflow", "4294967296"},
                                   {"no_array", "'a.txt': is no array"},
                                   {"magic", "does not begin as an array"},
                                   {"header", "is cut off in its header"},
                                   {"flipped", "cannot be unpacked, or its checksum is another"},
                                   {"cut", "no archive that can be read"}}) {
    INFO(name);
    CHECK_THAT(error(name), Catch::Contains(std::string(name) + ".npz") && Catch::Contains(part));
  }
}

}  // namespace
}  // namespace draftproof
