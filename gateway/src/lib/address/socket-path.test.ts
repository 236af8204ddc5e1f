import { describe, expect, it } from 'vitest'
import { isSocketAddress, parseSocketPath } from './socket-path.ts'

describe('parseSocketPath', () => {
  it.each([
    ['unix:/run/authz.sock', '/run/authz.sock'],
    ['unix:///run/authz.sock', '///run/authz.sock'],
    ['unix:/run/with space:80', '/run/with space:80'],
    [`unix:/${'x'.repeat(102)}`, `/${'x'.repeat(102)}`],
  ])('parses %s', (text, path) => {
    expect(parseSocketPath(text)).toBe(path)
    expect(isSocketAddress(text)).toBe(true)
  })

  it.each([
    'unix:',
    'unix:/',
    'unix:relative.sock',
    'unix:@abstract',
    'UNIX:/run/a',
    'unix:/run/\0a',
    'unix:/a\n',
    `unix:/${'x'.repeat(103)}`,
    `unix:/${'ä'.repeat(60)}`,
    '/run/a.sock',
    'localhost:80',
    '',
  ])('rejects %j', (text) => {
    expect(parseSocketPath(text)).toBeUndefined()
  })
})

it.each(['UNIX:/run/a', ' unix:/run/a', 'unix:'])('%j is meant as the address of a socket', (text) => {
  expect(isSocketAddress(text)).toBe(true)
})

it.each(['unix', 'unix.internal:80', 'localhost:80'])(
  '%j is not meant as the address of a socket',
  (text) => {
    expect(isSocketAddress(text)).toBe(false)
  },
)
