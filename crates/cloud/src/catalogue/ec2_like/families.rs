//! The table behind the EC2-like catalogue. Illustrative: shapes and list prices of a past day.

pub(super) struct Family {
    pub name: &'static str,
    pub category: &'static str,
    pub generation: u32,
    pub architecture: Architecture,
    pub manufacturer: &'static str,
    pub gib_per_cpu: u32,
    pub sizes: &'static [(&'static str, u32)],
    /// Micro-dollars per hour of the size with two CPUs; the others cost in proportion.
    pub micros_of_large: i64,
    /// Local disks of the size with two CPUs; the others have them in proportion.
    pub nvme_gb_of_large: u32,
}

#[derive(Clone, Copy)]
pub(super) enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// Machines with GPUs follow no proportion.
pub(super) struct GpuType {
    pub family: &'static str,
    pub size: &'static str,
    pub generation: u32,
    pub cpu_manufacturer: &'static str,
    pub cpus: u32,
    pub gib: u32,
    pub gpus: u32,
    pub gpu_name: &'static str,
    pub gpu_memory_mib: u32,
    pub nvme_gb: u32,
    pub micros: i64,
}

type Sizes = &'static [(&'static str, u32)];

const TO_64: Sizes = &[
    ("medium", 1),
    ("large", 2),
    ("xlarge", 4),
    ("2xlarge", 8),
    ("4xlarge", 16),
    ("8xlarge", 32),
    ("12xlarge", 48),
    ("16xlarge", 64),
];
const WIDE: Sizes = &[
    ("large", 2),
    ("xlarge", 4),
    ("2xlarge", 8),
    ("4xlarge", 16),
    ("8xlarge", 32),
    ("12xlarge", 48),
    ("16xlarge", 64),
    ("24xlarge", 96),
];
/// The fifth generation of compute machines counts in nines.
const NINES: Sizes = &[
    ("large", 2),
    ("xlarge", 4),
    ("2xlarge", 8),
    ("4xlarge", 16),
    ("9xlarge", 36),
    ("12xlarge", 48),
    ("18xlarge", 72),
    ("24xlarge", 96),
];
const FROM_ONE: Sizes = &[
    ("medium", 1),
    ("large", 2),
    ("xlarge", 4),
    ("2xlarge", 8),
    ("4xlarge", 16),
    ("8xlarge", 32),
    ("12xlarge", 48),
    ("16xlarge", 64),
    ("24xlarge", 96),
];
const FLEX: Sizes = &[("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32)];

const fn x86(
    name: &'static str,
    generation: u32,
    manufacturer: &'static str,
    sizes: Sizes,
    micros_of_large: i64,
) -> Family {
    family(name, generation, Architecture::Amd64, manufacturer, sizes, micros_of_large)
}

const fn arm(name: &'static str, generation: u32, sizes: Sizes, micros_of_large: i64) -> Family {
    family(name, generation, Architecture::Arm64, "aws", sizes, micros_of_large)
}

const fn family(
    name: &'static str,
    generation: u32,
    architecture: Architecture,
    manufacturer: &'static str,
    sizes: Sizes,
    micros_of_large: i64,
) -> Family {
    let (category, gib_per_cpu) = match name.as_bytes()[0] {
        b'c' => ("c", 2),
        b'r' => ("r", 8),
        b'i' => ("i", 8),
        _ => ("m", 4),
    };
    Family {
        name,
        category,
        generation,
        architecture,
        manufacturer,
        gib_per_cpu,
        sizes,
        micros_of_large,
        nvme_gb_of_large: 0,
    }
}

impl Family {
    const fn with_nvme(mut self, gb_of_large: u32) -> Self {
        self.nvme_gb_of_large = gb_of_large;
        self
    }
}

pub(super) const FAMILIES: &[Family] = &[
    // General purpose.
    x86("m5", 5, "intel", WIDE, 96_000),
    x86("m5a", 5, "amd", WIDE, 86_000),
    x86("m5d", 5, "intel", WIDE, 113_000).with_nvme(75),
    x86("m6i", 6, "intel", WIDE, 96_000),
    x86("m6a", 6, "amd", WIDE, 86_400),
    x86("m6id", 6, "intel", WIDE, 118_650).with_nvme(118),
    arm("m6g", 6, TO_64, 77_000),
    arm("m6gd", 6, TO_64, 90_400).with_nvme(118),
    x86("m7i", 7, "intel", WIDE, 100_800),
    x86("m7i-flex", 7, "intel", FLEX, 95_760),
    x86("m7a", 7, "amd", FROM_ONE, 115_920),
    arm("m7g", 7, TO_64, 81_600),
    arm("m7gd", 7, TO_64, 106_800).with_nvme(118),
    arm("m8g", 8, FROM_ONE, 89_760),
    // Compute.
    x86("c5", 5, "intel", NINES, 85_000),
    x86("c5a", 5, "amd", WIDE, 77_000),
    x86("c5d", 5, "intel", NINES, 96_000).with_nvme(50),
    x86("c6i", 6, "intel", WIDE, 85_000),
    x86("c6a", 6, "amd", WIDE, 76_500),
    x86("c6id", 6, "intel", WIDE, 100_800).with_nvme(118),
    arm("c6g", 6, TO_64, 68_000),
    arm("c6gd", 6, TO_64, 76_800).with_nvme(118),
    x86("c7i", 7, "intel", WIDE, 89_250),
    x86("c7i-flex", 7, "intel", FLEX, 84_790),
    x86("c7a", 7, "amd", FROM_ONE, 102_640),
    arm("c7g", 7, TO_64, 72_500),
    arm("c7gd", 7, TO_64, 90_700).with_nvme(118),
    arm("c8g", 8, FROM_ONE, 79_760),
    // Memory.
    x86("r5", 5, "intel", WIDE, 126_000),
    x86("r5a", 5, "amd", WIDE, 113_000),
    x86("r5d", 5, "intel", WIDE, 144_000).with_nvme(75),
    x86("r6i", 6, "intel", WIDE, 126_000),
    x86("r6a", 6, "amd", WIDE, 113_400),
    x86("r6id", 6, "intel", WIDE, 151_200).with_nvme(118),
    arm("r6g", 6, TO_64, 100_800),
    arm("r6gd", 6, TO_64, 115_200).with_nvme(118),
    x86("r7i", 7, "intel", WIDE, 132_300),
    x86("r7a", 7, "amd", FROM_ONE, 152_150),
    arm("r7g", 7, TO_64, 107_100),
    arm("r7gd", 7, TO_64, 136_100).with_nvme(118),
    arm("r8g", 8, FROM_ONE, 117_820),
    // Storage.
    x86("i4i", 4, "intel", WIDE, 171_600).with_nvme(468),
];

const fn t4(size: &'static str, [cpus, gib, gpus, nvme_gb]: [u32; 4], micros: i64) -> GpuType {
    GpuType {
        family: "g4dn",
        size,
        generation: 4,
        cpu_manufacturer: "intel",
        cpus,
        gib,
        gpus,
        gpu_name: "t4",
        gpu_memory_mib: 16_384,
        nvme_gb,
        micros,
    }
}

const fn a10g(size: &'static str, [cpus, gib, gpus, nvme_gb]: [u32; 4], micros: i64) -> GpuType {
    GpuType {
        family: "g5",
        generation: 5,
        cpu_manufacturer: "amd",
        gpu_name: "a10g",
        gpu_memory_mib: 24_576,
        ..t4(size, [cpus, gib, gpus, nvme_gb], micros)
    }
}

const fn l4(size: &'static str, [cpus, gib, gpus, nvme_gb]: [u32; 4], micros: i64) -> GpuType {
    GpuType {
        family: "g6",
        generation: 6,
        cpu_manufacturer: "amd",
        gpu_name: "l4",
        gpu_memory_mib: 22_888,
        ..t4(size, [cpus, gib, gpus, nvme_gb], micros)
    }
}

pub(super) const GPU_TYPES: &[GpuType] = &[
    t4("xlarge", [4, 16, 1, 125], 526_000),
    t4("2xlarge", [8, 32, 1, 225], 752_000),
    t4("4xlarge", [16, 64, 1, 225], 1_204_000),
    t4("8xlarge", [32, 128, 1, 900], 2_176_000),
    t4("12xlarge", [48, 192, 4, 900], 3_912_000),
    t4("16xlarge", [64, 256, 1, 900], 4_352_000),
    a10g("xlarge", [4, 16, 1, 250], 1_006_000),
    a10g("2xlarge", [8, 32, 1, 450], 1_212_000),
    a10g("4xlarge", [16, 64, 1, 600], 1_624_000),
    a10g("8xlarge", [32, 128, 1, 900], 2_448_000),
    a10g("12xlarge", [48, 192, 4, 3_800], 5_672_000),
    a10g("24xlarge", [96, 384, 4, 3_800], 8_144_000),
    a10g("48xlarge", [192, 768, 8, 7_600], 16_288_000),
    l4("xlarge", [4, 16, 1, 250], 804_800),
    l4("2xlarge", [8, 32, 1, 450], 977_600),
    l4("4xlarge", [16, 64, 1, 600], 1_323_200),
    l4("8xlarge", [32, 128, 1, 900], 2_014_400),
    l4("12xlarge", [48, 192, 4, 3_760], 4_601_600),
    l4("24xlarge", [96, 384, 4, 3_760], 6_675_200),
];
