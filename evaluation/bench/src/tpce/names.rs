//! Names of people, companies and places, made up here.

use ensilo::Text;

use crate::random::Random;

const FIRST: [&str; 32] = [
    "Ada", "Bo", "Cleo", "Dov", "Elin", "Faro", "Gita", "Hale", "Ines", "Jori", "Kaya", "Lev", "Mira", "Noa",
    "Odo", "Pia", "Quin", "Rhea", "Sol", "Tove", "Ugo", "Vera", "Wim", "Xenia", "Yuri", "Zoe", "Alba",
    "Bruno", "Cora", "Dario", "Esme", "Finn",
];
const LAST_HEADS: [&str; 24] = [
    "Alder", "Birk", "Cold", "Dorn", "Elm", "Fair", "Gold", "Hart", "Iron", "Kirk", "Lang", "Mill", "North",
    "Oak", "Penn", "Quill", "Rain", "Stone", "Thorn", "Under", "Vale", "West", "Yarrow", "Zell",
];
const LAST_TAILS: [&str; 20] = [
    "brook", "by", "dale", "feld", "ford", "gate", "holm", "ing", "kamp", "land", "ley", "man", "mere",
    "ridge", "sen", "ster", "ton", "wald", "wick", "wood",
];
const COMPANY_KINDS: [&str; 12] = [
    "Works", "Systems", "Lines", "Foods", "Labs", "Metals", "Power", "Trust", "Textiles", "Media", "Tools",
    "Glass",
];
/// The sectors.
pub(super) const SECTORS: [&str; 12] = [
    "Materials",
    "Machinery",
    "Retail",
    "Transport",
    "Power",
    "Finance",
    "Health",
    "Food",
    "Media",
    "Computing",
    "Construction",
    "Textiles",
];
const INDUSTRY_KINDS: [&str; 9] = [
    "Supply",
    "Services",
    "Trade",
    "Research",
    "Equipment",
    "Leasing",
    "Recycling",
    "Design",
    "Distribution",
];
/// Industries: nine of each of the first six sectors, eight of the others.
pub(super) const INDUSTRIES: u32 = 102;

/// A person: names, and what tax authorities know them by.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) first: Text<20>,
    pub(super) last: Text<25>,
    pub(super) tax_id: Text<20>,
}

impl Person {
    /// The person with this number. Two have different tax ids, but maybe one name.
    pub(super) fn of(number: u64) -> Self {
        let mut random = Random::new(number);
        Self {
            first: Text::truncated(pick(&FIRST, &mut random)),
            last: Text::truncated(&last_name(&mut random)),
            tax_id: Text::truncated(&format!("{:03}TX{number:012}", random.below(1_000))),
        }
    }

    /// Both names, as a trade's executor.
    pub(super) fn full_name(&self) -> Text<49> {
        Text::truncated(&format!("{} {}", self.first, self.last))
    }
}

/// The name of a broker; no two have the same.
pub(super) fn broker(number: u32) -> Text<49> {
    let mut random = Random::new(u64::from(number));
    Text::truncated(&format!("{} {} {number}", pick(&FIRST, &mut random), last_name(&mut random)))
}

/// The name of a company; no two have the same.
pub(super) fn company(number: u32) -> Text<60> {
    let mut random = Random::new(u64::from(number));
    Text::truncated(&format!("{} {} {number}", last_name(&mut random), pick(&COMPANY_KINDS, &mut random)))
}

/// The sector of an industry, both counted from 0.
pub(super) fn sector_of(industry: u32) -> u32 {
    if industry < 54 { industry / 9 } else { 6 + (industry - 54) / 8 }
}

/// The name of an industry; no two have the same.
pub(super) fn industry(number: u32) -> Text<50> {
    let within = if number < 54 { number % 9 } else { (number - 54) % 8 };
    let (sector, kind) = (SECTORS[sector_of(number) as usize], INDUSTRY_KINDS[within as usize]);
    Text::truncated(&format!("{sector} {kind}"))
}

/// The key of a sector or an industry: two letters.
pub(super) fn two_letters(number: u32) -> Text<2> {
    let letter = |number: u32| char::from(b'A' + (number % 26) as u8);
    Text::truncated(&String::from_iter([letter(number / 26), letter(number)]))
}

/// The name of a town.
pub(super) fn town(random: &mut Random) -> String {
    last_name(random)
}

/// Words that fill up to `len` bytes.
pub(super) fn words(len: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(len + 16);
    while text.len() < len {
        text.push_str(pick(&LAST_HEADS, random));
        text.push_str(pick(&LAST_TAILS, random));
        text.push(' ');
    }
    text.truncate(len);
    text
}

fn last_name(random: &mut Random) -> String {
    format!("{}{}", pick(&LAST_HEADS, random), pick(&LAST_TAILS, random))
}

fn pick<'a>(words: &[&'a str], random: &mut Random) -> &'a str {
    words[random.below(words.len() as u64) as usize]
}
