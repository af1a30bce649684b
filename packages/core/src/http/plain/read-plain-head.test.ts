import { expect, test } from 'vitest'
import { readPlainHead } from './read-plain-head.ts'

const read = (text: string, maxBytes = 1_000) => readPlainHead(Buffer.from(text, 'latin1'), maxBytes)
const plain = 'POST /r/a/v1?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n'

test('a plain head is read: names in lower case, values without the blanks around them', () => {
  const text = `${plain}X-Empty:\r\nX-Odd: \t a b\xe9 \t\r\nConnection: Keep-Alive\r\n\r\nhello`
  expect(read(text)).toEqual({
    url: '/r/a/v1?x=1',
    headers: { host: 'x', 'content-length': '5', 'x-empty': '', 'x-odd': 'a b\xe9', connection: 'Keep-Alive' },
    length: 5,
    bodyFrom: text.length - 5,
    last: false,
  })
  expect(read(`${plain}connection: CLOSE\r\n\r\n`)).toMatchObject({ last: true })
  expect(read('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')).toMatchObject({ url: '/', length: 0 })
})

const others: Readonly<Record<string, string>> = {
  'nothing yet': 'POS',
  'half a head': `${plain}x-a: b\r\n`,
  'another method': 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n',
  'a method in small letters': plain.replace('POST', 'post').concat('\r\n'),
  'an older version': `${plain.replace('1.1', '1.0')}\r\n`,
  'a newer version': `${plain.replace('1.1', '1.2')}\r\n`,
  'an absolute address': `${plain.replace('/r/', 'http://x/r/')}\r\n`,
  'a blank in the path': `${plain.replace('/r/', '/r /')}\r\n`,
  'a path beyond ASCII': `${plain.replace('/r/', '/\xe9/')}\r\n`,
  'two blanks before the path': `${plain.replace('POST ', 'POST  ')}\r\n`,
  'no host': 'POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n',
  'two hosts': `${plain}host: y\r\n\r\n`,
  'no length': 'POST / HTTP/1.1\r\nhost: x\r\n\r\n',
  'two equal lengths': `${plain}content-length: 5\r\n\r\n`,
  'two lengths': `${plain}content-length: 6\r\n\r\n`,
  'lengths in a list': `${plain.replace('5', '5, 5')}\r\n`,
  'a length with a sign': `${plain.replace(': 5', ': +5')}\r\n`,
  'a length in hexadecimal': `${plain.replace(': 5', ': 0x5')}\r\n`,
  'an empty length': `${plain.replace(': 5', ':')}\r\n`,
  'a length of eleven digits': `${plain.replace(': 5', ': 00000000005')}\r\n`,
  'chunks beside a length': `${plain}transfer-encoding: chunked\r\n\r\n`,
  'an encoding without a length': 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n',
  'another protocol': `${plain}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
  'an expectation': `${plain}expect: 100-continue\r\n\r\n`,
  'trailers announced': `${plain}trailer: x\r\n\r\n`,
  'more in connection than one word': `${plain}connection: keep-alive, x\r\n\r\n`,
  'a name twice': `${plain}x-a: 1\r\nX-A: 2\r\n\r\n`,
  'a name that objects have': `${plain}constructor: 1\r\n\r\n`,
  'no name': `${plain}: a\r\n\r\n`,
  'a blank behind the name': `${plain}x-a : b\r\n\r\n`,
  'a line without a colon': `${plain}x-a\r\n\r\n`,
  'a line that goes on': `${plain}x-a: b\r\n c\r\n\r\n`,
  'a NUL': `${plain}x-a: b\0c\r\n\r\n`,
  'a bell': `${plain}x-a: b\x07c\r\n\r\n`,
  'a DEL': `${plain}x-a: b\x7fc\r\n\r\n`,
  'a line that ends in LF': `${plain}x-a: b\ncontent-length: 9\r\n\r\n`,
  'a line that ends in CR': `${plain}x-a: b\rcontent-length: 9\r\n\r\n`,
  'a head that ends in LF LF': `${plain}\n\n`,
}

for (const [name, text] of Object.entries(others))
  test(`is left to the parser that knows all of HTTP: ${name}`, () => {
    expect(read(text)).toBeNull()
  })

test('a head above the limit is left too, at the limit it is read', () => {
  const text = `${plain}\r\n`
  expect(read(text, text.length)).not.toBeNull()
  expect(read(text, text.length - 1)).toBeNull()
})
