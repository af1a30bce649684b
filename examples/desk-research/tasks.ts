/** A question whose answer stands in an attachment, in the world outside, or in what a program makes of them. */
export interface ResearchTask {
  readonly id: string
  readonly prompt: string
  readonly answer: string
  /** Name of the attachment, which lies in the workspace. */
  readonly file?: string
  /** Whether it takes programs of the machine, such as ffmpeg and Chromium, which run in the tier `bubblewrap` alone. */
  readonly takesPrograms?: true
}

export const tasks: readonly ResearchTask[] = [
  { id: 'csv', prompt: 'What is the median tonnage in harbours.csv?', answer: '4120', file: 'harbours.csv' },
  { id: 'xlsx', prompt: 'How many ferries does Ostend have in ferries.xlsx?', answer: '17', file: 'ferries.xlsx' },
  { id: 'docx', prompt: 'Who chaired the meeting of minutes.docx?', answer: 'Ada Lindqvist', file: 'minutes.docx' },
  { id: 'pptx', prompt: 'Which year does the speaker note of talk.pptx name?', answer: '1874', file: 'talk.pptx' },
  { id: 'pdf', prompt: 'What is the serial number on the second page of manual.pdf?', answer: 'KX-2209', file: 'manual.pdf' },
  { id: 'txt', prompt: 'What is the name of the café in letter.txt?', answer: 'Café Müller', file: 'letter.txt' },
  { id: 'page', prompt: 'How high is the lighthouse of https://lighthouses.test/sule, in metres?', answer: '27' },
  { id: 'search', prompt: 'Find the page about the Halden tide clock. Who built it?', answer: 'Ingrid Moen' },
  { id: 'wiki', prompt: 'In which year was the bridge of the Wikipedia article "Teal Bridge" opened?', answer: '1931' },
  { id: 'wiki-history', prompt: 'How many spans did the article "Teal Bridge" give it on 2019-06-01?', answer: '9' },
  { id: 'paper', prompt: 'In which journal did the arXiv paper on tidal clocks appear?', answer: 'Journal of Tides 12' },
  { id: 'paper-text', prompt: 'What drift does the text of the arXiv paper on tidal clocks measure, in seconds?', answer: '43' },
  { id: 'archive', prompt: 'Which price did https://lighthouses.test/tickets show in 2015, in crowns?', answer: '85' },
  { id: 'download', prompt: 'What is the largest depth in https://lighthouses.test/depths.csv?', answer: '318' },
  { id: 'code', prompt: 'What is the sum of the squares of the numbers in numbers.txt?', answer: '1015', file: 'numbers.txt' },
  { id: 'terminal', prompt: 'Which address is most frequent in access.log?', answer: '10.0.0.7', file: 'access.log' },
  { id: 'image', prompt: 'Which word stands second on sign.png?', answer: 'TALL', file: 'sign.png', takesPrograms: true },
  { id: 'sound', prompt: 'How long is the recording bell.wav, in seconds?', answer: '7.25', file: 'bell.wav', takesPrograms: true },
  {
    id: 'film',
    prompt: 'Which words does film.gif show after a second and a half?',
    answer: 'A TALENT',
    file: 'film.gif',
    takesPrograms: true,
  },
  {
    id: 'form',
    prompt: 'What does a crossing from Halden cost by the form of https://lighthouses.test/ferry, in crowns?',
    answer: '63',
    takesPrograms: true,
  },
]
