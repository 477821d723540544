//! Collects the values of the rounds of a part.

use crate::plan::Part;
use crate::report::{Figure, Kind, Ratio, Unit};
use crate::statistics::{Spread, ratios};

/// The values that a part has measured so far.
#[derive(Debug)]
pub(crate) struct Record {
    part: Part,
    series: Vec<Series>,
    comparisons: Vec<(String, String)>,
}

/// The values of one figure.
#[derive(Debug)]
struct Series {
    name: String,
    about: String,
    kind: Kind,
    unit: Unit,
    values: Vec<f64>,
}

impl Record {
    pub(crate) fn new(part: Part) -> Record {
        Record { part, series: Vec::new(), comparisons: Vec::new() }
    }

    /// Adds a value of Windlass.
    pub(crate) fn windlass(
        &mut self,
        name: impl Into<String>,
        about: impl Into<String>,
        unit: Unit,
        value: f64,
    ) {
        self.figure(name, about, Kind::Windlass, unit, value);
    }

    /// Adds a value of a reference.
    pub(crate) fn machine(
        &mut self,
        name: impl Into<String>,
        about: impl Into<String>,
        unit: Unit,
        value: f64,
    ) {
        self.figure(name, about, Kind::Machine, unit, value);
    }

    /// Adds a value of Windlass or of a reference.
    pub(crate) fn figure(
        &mut self,
        name: impl Into<String>,
        about: impl Into<String>,
        kind: Kind,
        unit: Unit,
        value: f64,
    ) {
        let name = name.into();
        match self.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.values.push(value),
            None => self.series.push(Series { name, about: about.into(), kind, unit, values: vec![value] }),
        }
    }

    /// Asks for the ratio of one figure to another.
    pub(crate) fn compare(&mut self, name: impl Into<String>, to: impl Into<String>) {
        self.comparisons.push((name.into(), to.into()));
    }

    /// The figures, each with its ratios. A figure without a number in any round is left out.
    pub(crate) fn into_figures(self) -> Vec<Figure> {
        let Record { part, series, comparisons } = &self;
        let figure = |of: &Series| {
            let to = comparisons.iter().filter(|(name, _)| *name == of.name).map(|(_, to)| to);
            let ratios =
                to.filter_map(|to| Some(Ratio { to: to.clone(), value: self.ratio(of, to)? })).collect();
            Some(Figure {
                part: *part,
                name: of.name.clone(),
                about: of.about.clone(),
                kind: of.kind,
                unit: of.unit,
                rounds: of.values.len(),
                value: Spread::of(&of.values)?,
                ratios,
            })
        };
        series.iter().filter_map(figure).collect()
    }

    fn ratio(&self, of: &Series, to: &str) -> Option<Spread> {
        let to = self.series.iter().find(|series| series.name == to)?;
        Spread::of(&ratios(&of.values, &to.values))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_figure_has_the_rounds_of_its_name_and_its_ratios() {
        let mut record = Record::new(Part::Drain);
        for (ours, raw) in [(10.0, 20.0), (30.0, 40.0), (20.0, 80.0)] {
            record.windlass("ours", "what we do", Unit::PerSecond, ours);
            record.machine("raw", "what is possible", Unit::PerSecond, raw);
        }
        record.machine("nothing", "no number", Unit::PerSecond, f64::NAN);
        record.compare("ours", "raw");
        record.compare("ours", "unknown");
        let figures = record.into_figures();
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["ours", "raw"]);
        let ours = &figures[0];
        assert_eq!((ours.rounds, ours.kind, ours.value.median), (3, Kind::Windlass, 20.0));
        let ratio = &ours.ratios[0];
        assert_eq!(ours.ratios.len(), 1);
        let expected = Spread { median: 0.5, min: 0.25, max: 0.75 };
        assert_eq!((ratio.to.as_str(), ratio.value), ("raw", expected));
    }
}
