//! The report as text: a table for each part, with the figures of the machine below those of Windlass.

use windlass_bench::{Figure, Kind, Machine, Report, Spread, Unit};

use crate::text::style::{BOLD, DIM, paint};
use crate::text::table::{self, Column, Table};

pub(super) fn report(report: &Report) -> String {
    let Report { windlass_version, rounds, machine, figures, .. } = report;
    let mut text = format!("windlass {windlass_version}, {}\n{}\n", database(machine), hardware(machine));
    let times = if *rounds == 1 { "once".to_owned() } else { format!("{rounds} times") };
    text.push_str(&format!(
        "each figure was measured {times}; the table shows the median, the lowest and the highest\n"
    ));
    for part in figures.chunk_by(|one, other| one.part == other.part) {
        let Some(first) = part.first() else { continue };
        text.push_str(&format!("\n{}\n", paint(BOLD, first.part.about())));
        text.push_str(&table(part));
        text.push('\n');
    }
    text
}

fn database(machine: &Machine) -> String {
    match &machine.file_system {
        Some(file_system) => format!("{} on {file_system}", machine.database),
        None => machine.database.clone(),
    }
}

fn hardware(machine: &Machine) -> String {
    let gib = machine.memory_bytes as f64 / GIB;
    format!("{}, {} cores, {gib:.0} GiB, Linux {}", machine.processor, machine.cores, machine.kernel)
}

fn table(figures: &[Figure]) -> String {
    let mut table = Table::new(&[
        Column::Shrinking("FIGURE"),
        Column::Right("MEDIAN"),
        Column::Right("LOWEST"),
        Column::Right("HIGHEST"),
        Column::Right("RATIO"),
        Column::Optional("FROM TO"),
    ]);
    let of_machine = |name: &str| figures.iter().find(|figure| figure.name == name);
    for figure in figures.iter().filter(|figure| figure.kind == Kind::Windlass) {
        let [median, lowest, highest] = shown(figure.unit, figure.value);
        table.row([figure.about.clone(), median, lowest, highest, String::new(), String::new()]);
        for ratio in &figure.ratios {
            let Some(other) = of_machine(&ratio.to) else { continue };
            let [median, lowest, highest] = shown(other.unit, other.value);
            let Spread { median: middle, min, max } = ratio.value;
            table.row([
                paint(DIM, format!("  beside: {}", other.about)),
                paint(DIM, median),
                paint(DIM, lowest),
                paint(DIM, highest),
                format!("{middle:.2}"),
                paint(DIM, format!("{min:.2} to {max:.2}")),
            ]);
        }
    }
    table.render(table::stdout_width())
}

const KIB: f64 = 1_024.0;
const MIB: f64 = KIB * 1_024.0;
const GIB: f64 = MIB * 1_024.0;

fn shown(unit: Unit, value: Spread) -> [String; 3] {
    [value.median, value.min, value.max].map(|value| number(unit, value))
}

/// A value with its unit and three significant digits.
fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond if value >= 100.0 => format!("{}/s", thousands(value)),
        Unit::PerSecond => format!("{}/s", digits(value)),
        Unit::Milliseconds => format!("{} ms", digits(value)),
        Unit::Microseconds => format!("{} µs", digits(value)),
        Unit::Seconds => format!("{} s", digits(value)),
        Unit::Count => digits(value),
        Unit::Bytes if value.abs() >= MIB => format!("{} MiB", digits(value / MIB)),
        Unit::Bytes => format!("{} B", thousands(value)),
        Unit::PercentOfCore => format!("{}%", digits(value)),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number, in groups of three digits.
fn thousands(value: f64) -> String {
    let whole = format!("{value:.0}");
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole.as_str()), |whole| ("-", whole));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit_and_three_digits() {
        let cases = [
            (Unit::PerSecond, 51_234.4, "51,234/s"),
            (Unit::PerSecond, 1_234_567.0, "1,234,567/s"),
            (Unit::PerSecond, 987.6, "988/s"),
            (Unit::PerSecond, 12.34, "12.3/s"),
            (Unit::Milliseconds, 0.3821, "0.382 ms"),
            (Unit::Microseconds, 23.44, "23.4 µs"),
            (Unit::Seconds, 4.214, "4.21 s"),
            (Unit::Count, 1.0, "1.00"),
            (Unit::Bytes, 64_200_000.0, "61.2 MiB"),
            (Unit::Bytes, -1_412.0, "-1,412 B"),
            (Unit::PercentOfCore, 0.118, "0.118%"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(number(unit, value), expected);
        }
    }
}
