# Packages that base, reference, exactness, engine and gpu link to.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS context)
find_library(HWY_LIBRARY hwy REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
find_library(ZIP_LIBRARY zip REQUIRED)
