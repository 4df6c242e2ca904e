# ./draftproof web. Read by ./draftproof.

# Where the language model has been fetched, it lies beside the page with its head, and the page knows of it.
put_models_beside_page() {
  local file names=()
  for file in "$model" "$root/experiments/heads/smollm2-eagle3/eagle3.gguf"; do
    if [[ ! -f $model ]]; then continue; fi
    ln -f "$file" "$root/out/web/" 2>/dev/null || cp "$file" "$root/out/web/"
    names+=("${file##*/}")
  done
  sed -i "s/data-models=\"[^\"]*\"/data-models=\"${names[*]}\"/" "$root/out/web/index.html"
}

# The dashboard as WebAssembly, by Emscripten: a build of its own (web/CMakeLists.txt), whose result is copied to out/.
build_web() {
  local folder=$root/build/web header
  require_packages "program web"
  require_writable "$folder"
  fetch imgui || fail 2 "web: the page cannot be built without it"
  mkdir -p "$folder/include" "$root/out/web"
  for header in nlohmann boost hwy toml++ eigen3/Eigen; do ln -sfn "/usr/include/$header" "$folder/include/${header##*/}"; done
  export NODE_PATH=/usr/share/nodejs  # where Debian keeps what Emscripten's JavaScript needs
  (
    flock 9
    say "building the page"
    if [[ ! -f $folder/build.ninja ]]; then
      run_step "$folder/configure.log" emcmake cmake -G Ninja -S "$root/web" -B "$folder"
    fi
    run_step "$folder/build.log" ninja -C "$folder" draftproof_web
    cp "$folder"/page/* "$root/out/web/"
    cp "$folder/draftproof.html" "$root/out/draftproof.html"
    put_models_beside_page
  ) 9>"$folder/.lock"
  say "out/web: $(cat "$folder"/page/* | gzip -9 | wc -c) bytes compressed; out/draftproof.html opens from disk"
}

web_verb() {
  local port=8000
  case ${1:-} in
    --help | -h) usage_of_launcher; exit 0 ;;
    "") build_web ;;
    --serve)
      port=${2:-$port}
      [[ $port =~ ^[0-9]+$ ]] && (($# <= 2)) || fail 2 "web: expected --serve PORT"
      build_web
      say "http://127.0.0.1:$port/ (Ctrl-C ends it)"
      exec python3 -I -m http.server --bind 127.0.0.1 --directory "$root/out/web" "$port" ;;
    --test)
      if (($# > 1)); then fail 2 "web: unexpected argument '$2'"; fi
      require_packages "program figures dash browser"
      build_web
      build release draftproof_program draftproof_verbs_viz draftproof_verbs_studies
      exec node "$root/web/tests/page_test.mjs" "$root/out/web" "$root/out/draftproof.html" "$root/build/release/draftproof" \
        "$root/out/web_pictures" ;;
    *) fail 2 "web: '$1' is not one of --serve, --test" ;;
  esac
}
