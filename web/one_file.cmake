# Makes the page in one file that opens from disk: cmake -DFROM=FOLDER -DPAGE=FILE -P one_file.cmake. FOLDER has index.html, page.js,
# draftproof.js and draftproof.wasm; the last two become base64 in the page (web/page.js).
file(READ ${FROM}/index.html page)
file(READ ${FROM}/page.js script)
foreach(part glue wasm)
  set(file_of_glue draftproof.js)
  set(file_of_wasm draftproof.wasm)
  execute_process(COMMAND base64 -w 0 ${FROM}/${file_of_${part}} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND program "<script type=\"text/plain\" id=\"${part}\">${text}</script>\n")
endforeach()
string(REPLACE "<!-- one file: the program -->\n" "${program}" page "${page}")
string(REPLACE "<script src=\"page.js\"></script>" "<script>\n${script}</script>" page "${page}")
file(WRITE ${PAGE} "${page}")
