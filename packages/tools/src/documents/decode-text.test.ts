import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import { decodeText } from './decode-text.ts'

const sentences = {
  chinese: ['北京是中国的首都', '长江是最长的河流', '今天天气很好我们去公园'],
  taiwanese: ['臺北是臺灣的首都', '今天天氣很好我們去公園', '歡迎來到這個美麗的國家'],
  czech: ['Příliš žluťoučký kůň', 'Hlavní město Praha', 'Dobrý den všem'],
  french: ['Le café est déjà fermé à Noël', 'Élève à l’école, garçon naïf', 'Où êtes-vous, monsieur ?'],
  german: ['Müller aus Köln', 'Größe und Übermaß', 'Straße in Düsseldorf'],
  greek: ['Η Αθήνα είναι πρωτεύουσα', 'Καλημέρα σε όλους', 'Η θάλασσα είναι γαλάζια'],
  hebrew: ['ירושלים היא בירת ישראל', 'שלום לכולם ובוקר טוב', 'הים הכחול יפה מאוד'],
  japanese: ['東京は日本の首都です', '富士山は高い山である', '今日はとても良い天気ですね'],
  korean: ['서울은 대한민국의 수도입니다', '오늘 날씨가 아주 좋습니다', '한국 음식은 맛있어요'],
  polish: ['Łódź, ulica Piotrkowska', 'Zażółć gęślą jaźń', 'Święto Niepodległości w Warszawie'],
  russian: ['Москва, столица России', 'Волга впадает в Каспийское море', 'Быстрая лиса перепрыгнула через собаку'],
  thai: ['กรุงเทพมหานคร เป็นเมืองหลวง', 'ประเทศไทยมีอาหารอร่อย', 'สวัสดีครับ ยินดีต้อนรับ'],
  turkish: ['İstanbul, Türkiye', 'Güneşli bir gün, çiçekler açıyor', 'Şişli ve Beyoğlu ilçeleri'],
} as const

/** JIS X 0208 between escape sequences, whose bytes are those of EUC-JP without their first bit. */
function encodeIso2022(text: string): Buffer {
  const pieces = text.split(/([^\0-\x7f]+)/).map((piece, index) => {
    const bytes = iconv.encode(piece, 'euc-jp')
    return index % 2 === 0 ? bytes.toString('latin1') : `\x1b$B${Buffer.from(bytes.map((byte) => byte & 0x7f)).toString('latin1')}\x1b(B`
  })
  return Buffer.from(pieces.join(''), 'latin1')
}

const tableOf = (lines: number, language: keyof typeof sentences) =>
  `id;place;amount\n${Array.from({ length: lines }, (_, index) => `${index};${sentences[language][index % 3]};${(index * 37) % 1_000}\n`).join('')}`

test.each([
  ['utf-7', 'german'],
  ['utf-32le', 'german'],
  ['utf-32be', 'chinese'],
  ['utf-16le', 'german'],
  ['utf-16be', 'russian'],
  ['utf-16be', 'japanese'],
  ['windows-1250', 'polish'],
  ['windows-1250', 'czech'],
  ['windows-1251', 'russian'],
  ['windows-1252', 'german'],
  ['windows-1252', 'french'],
  ['windows-1253', 'greek'],
  ['windows-1254', 'turkish'],
  ['windows-1255', 'hebrew'],
  ['koi8-r', 'russian'],
  ['cp866', 'russian'],
  ['cp874', 'thai'],
  ['iso-8859-2', 'polish'],
  ['shift_jis', 'japanese'],
  ['euc-jp', 'japanese'],
  ['iso-2022-jp', 'japanese'],
  ['gb18030', 'chinese'],
  ['big5', 'taiwanese'],
  ['euc-kr', 'korean'],
] as const)('a table in %s is read, %s, of sixty lines and of three, and said to be guessed', async (encoding, language) => {
  for (const lines of [60, 3]) {
    const table = tableOf(lines, language)
    const bytes = encoding === 'iso-2022-jp' ? encodeIso2022(table) : iconv.encode(table, encoding, { addBOM: false })
    const { text, notices, ...guess } = await decodeText('"a.csv"', bytes, null)
    expect(text).toBe(table)
    expect(notices).toEqual([
      `The text is not UTF-8. It was read as ${guess.encoding}, which is a guess; if words look wrong, name its encoding.`,
    ])
  }
})

test.each(['utf-16le', 'utf-16be', 'utf-32le', 'utf-32be'])('the byte order mark of %s is certain', async (encoding) => {
  const bytes = iconv.encode(tableOf(3, 'polish'), encoding, { addBOM: true })
  expect(await decodeText('"a"', bytes, null)).toEqual({ text: tableOf(3, 'polish'), encoding, notices: [] })
})

test('UTF-8 is no guess, whatever it looks like', async () => {
  for (const text of ['plain', 'a+bc-d and 3+AbC- e+fg-h', 'Grüße, 東京 🚀', '\x1b[1mbold\x1b[0m', 'price + VAT-'])
    expect(await decodeText('"a"', Buffer.from(text), null)).toEqual({ text, encoding: 'utf-8', notices: [] })
})

test('words behind a hundred kilobytes of plain letters decide as well', async () => {
  const text = `${'plain words\n'.repeat(10_000)}${tableOf(60, 'russian')}`
  expect((await decodeText('"a"', iconv.encode(text, 'cp866'), null)).text).toBe(text)
})

test('encodings have the names of Python too, and those that no browser knows', async () => {
  for (const [encoding, text] of [
    ['latin-1', 'é'],
    ['cp437', 'é'],
    ['utf_16_be', 'é'],
    ['UTF-7', 'é'],
    ['cp949', '서'],
    ['mac_roman', 'é'],
  ] as const)
    expect((await decodeText('"a"', iconv.encode(text, encoding), encoding)).text).toBe(text)
})
