import { createCipheriv } from 'node:crypto'

/** Number of characters of a password, and of bytes of the key that it is. */
export const passwordLength = 8

/** The key under which every VNC server and viewer keeps passwords in a file. It hides them from the eye alone. */
const fileKey = Buffer.from([23, 82, 107, 6, 35, 78, 88, 7])

/** The content of a VNC server's file of passwords: who has the first may use keyboard and mouse, who has the second may only watch. */
export function passwordFile(control: string, watch: string): Buffer {
  return Buffer.concat([encrypt(fileKey, Buffer.from(control, 'latin1')), encrypt(fileKey, Buffer.from(watch, 'latin1'))])
}

/** The answer to a VNC server's challenge of 16 bytes. */
export function answerChallenge(password: string, challenge: Buffer): Buffer {
  return encrypt(Buffer.from(password, 'latin1'), challenge)
}

/** DES of blocks of 8 bytes, with the bits of each byte of the key in reverse order (RFC 6143, 7.2.2). */
function encrypt(key: Buffer, blocks: Buffer): Buffer {
  const reversed = key.map((byte) => [0, 1, 2, 3, 4, 5, 6, 7].reduce((sum, bit) => sum | (((byte >> bit) & 1) << (7 - bit)), 0))
  // DES with one key is no longer part of OpenSSL. With the same key three times, triple DES is the same.
  const cipher = createCipheriv('des-ede3-ecb', Buffer.concat([reversed, reversed, reversed]), null).setAutoPadding(false)
  return Buffer.concat([cipher.update(blocks), cipher.final()])
}
