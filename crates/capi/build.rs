//! Names the shared library for the loader: programs ask for the version of the interface that they were
//! linked with (`HG_ABI_VERSION`).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libhourglass.so.1");
    }
}
