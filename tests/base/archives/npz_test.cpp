// Archives of arrays as Python's zipfile writes them: what NumPy writes, byte by byte, stored and deflated.
#include "base/archives/npz.hpp"

#include "base/archives/safetensors.hpp"
#include "tests/support/test.hpp"

namespace {

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
# Sizes are at 18 (packed) and 22 of a member's header, at 20 and 24 of its entry in the directory.
def forged(name, data, method, packed, size):
    with zipfile.ZipFile(folder + "plain", "w", method) as z: z.writestr("a.npy", data)
    file = bytearray(open(folder + "plain", "rb").read())
    for at in (18, file.index(b"PK\1\2") + 20): struct.pack_into("<II", file, at, packed or struct.unpack_from("<I", file, at)[0], size)
    open(folder + name + ".npz", "wb").write(file)
claims = npy("<f8", "(%d,)" % (1 << 29), b"\0" * 64)
forged("packed_bomb", claims, zipfile.ZIP_DEFLATED, 1 << 23, 0xfffffff0)
forged("bomb", claims, zipfile.ZIP_DEFLATED, 0, 0xfffffff0)
forged("stored_bomb", claims, zipfile.ZIP_STORED, 0, 0xfffffff0)
save(folder + "other_shape.npz", {"a.npy": npy("<f8", "(3,)", b"\0" * (1 << 26))}, zipfile.ZIP_DEFLATED)
save(folder + "long_header.npz", {"a.npy": b"\x93NUMPY\2\0" + struct.pack("<I", 1 << 24) + b" " * (1 << 24)}, zipfile.ZIP_DEFLATED)
save(folder + "bzip2.npz", {"a.npy": npy("<f8", "(8,)", b"\0" * 64)}, zipfile.ZIP_BZIP2)
# One member, three entries of the directory: a.npy, b.npy, c.npy.
with zipfile.ZipFile(folder + "plain", "w") as z: z.writestr("a.npy", npy("<f8", "(64,)", b"\0" * 512))
file = open(folder + "plain", "rb").read()
start, end = file.index(b"PK\1\2"), file.index(b"PK\5\6")
entries = [file[start:end].replace(b"a.npy", name) for name in (b"a.npy", b"b.npy", b"c.npy")]
tail = bytearray(file[end:])
struct.pack_into("<HHI", tail, 8, 3, 3, sum(map(len, entries)))
open(folder + "overlap.npz", "wb").write(file[:start] + b"".join(entries) + tail)
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
    if (kSanitized) continue;  // audit is not built there
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
                                   {"cut", "no archive that can be read"},
                                   {"packed_bomb", "'a.npy': takes 8388608 bytes (8 MiB) of the archive, more than"},
                                   {"bomb", "'a.npy': says that it holds 4294967280 bytes"},
                                   {"stored_bomb", "expected at most as many"},
                                   {"other_shape", "of data; expected shape [3] of F64"},
                                   {"long_header", "'a.npy': has a header of 16777216 bytes"},
                                   {"bzip2", "'a.npy': is compressed by method 12"},
                                   {"overlap", "'b.npy': takes 640 bytes of the archive, more than"}}) {
    INFO(name);
    CHECK_THAT(error(name), Contains(std::string(name) + ".npz") && Contains(part));
  }
}

TEST_CASE("what an archive claims takes no memory before it is found to be false") {
  if (kSanitized) return;  // address sanitizers need all of the address space
  const TemporaryFolder folder;
  if (!write_archives(folder)) return;
  for (const char* const name : {"packed_bomb", "bomb", "stored_bomb", "other_shape", "long_header"}) {
    const ProgramResult result = run_command({"sh", "-c", "ulimit -v $2; exec \"$0\" audit \"$1\"", DRAFTPROOF_PROGRAM,
                                              folder.file(name) + ".npz", "400000"});
    INFO(name << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("member 'a.npy'") != std::string::npos);
  }
}

}  // namespace
