import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseHtpasswd } from './htpasswd.ts'

const bcrypt = '$2y$05$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu'
const argon = '$argon2id$v=19$m=65536,t=3,p=4$BwcHBwcHBwcHBwcHBwcHBw$sMK7UGOHUweLROQ9avMT4OZsd9oEELf'

const usersOf = (text: string) => {
  const parsed = parseHtpasswd(text)
  return parsed.kind === 'users' ? [...parsed.users] : parsed.message
}

describe('an htpasswd file', () => {
  it('has users with bcrypt and argon2 hashes, comments and empty lines', () => {
    expect(usersOf(`# people\n\nada:${bcrypt}\r\nben smith:${argon}\n`)).toEqual([
      ['ada', bcrypt],
      ['ben smith', argon],
    ])
  })

  it.each([
    ['$apr1$abc$defghijklmnopqrstuvwx01', 'an MD5 hash, which is too weak'],
    ['{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', 'a SHA-1 hash, which is too weak'],
    ['secret', 'no bcrypt or argon2 hash'],
    ['rl0uE0KsF3bPo', 'no bcrypt or argon2 hash'],
    ['$6$salt$hash', 'no bcrypt or argon2 hash'],
    [`${bcrypt}x`, 'no bcrypt or argon2 hash'],
    [bcrypt.replace('$05$', '$15$'), 'a bcrypt cost of 15'],
    [argon.replace('m=65536', 'm=1048576'), 'must have m of'],
    [argon.replace('m=65536', 'm=8'), 'must have m of'],
    [argon.replace('t=3', 't=99'), 'must have t of'],
    [argon.replace('t=3', 't=0'), 'must have t of'],
    [argon.replace('p=4', 'p=64'), 'must have p of'],
    [argon.replace('v=19', 'v=16'), 'no bcrypt or argon2 hash'],
  ])('with the hash %s is refused without quoting it', (hash, reason) => {
    const message = usersOf(`ada:${bcrypt}\nben:${hash}`)
    expect(message).toContain(reason)
    expect(message).toContain('line 2')
    expect(message).not.toContain(hash)
  })

  it.each([
    ['', 'at least one user'],
    ['# nobody', 'at least one user'],
    ['ada', 'line 1 must be user:hash'],
    [`:${bcrypt}`, 'user name of 1'],
    [`a\u0000b:${bcrypt}`, 'user name of 1'],
    [`${'a'.repeat(256)}:${bcrypt}`, 'user name of 1'],
    [`ada:${bcrypt}\nada:${bcrypt}`, 'line 2 repeats a user'],
    [Array.from({ length: 10_001 }, (_, index) => `u${index}:${bcrypt}`).join('\n'), 'at most 10000 users'],
  ])('is refused with its mistake: %s', (text, reason) => expect(usersOf(text)).toContain(reason))

  it('has the users that were written, in any order and format', () => {
    const user = fc.stringMatching(/^[^\p{Cc}:#\s][^\p{Cc}:]{0,20}$/u).filter((name) => name === name.trim())
    const entries = fc.uniqueArray(fc.tuple(user, fc.constantFrom(bcrypt, argon)), {
      minLength: 1,
      selector: ([name]) => name,
    })
    const noise = fc.constantFrom('', '\n', '\r\n', '# note\n', '  \n')
    fc.assert(
      fc.property(entries, noise, fc.constantFrom('\n', '\r\n'), (written, between, end) => {
        const text = written.map(([name, hash]) => `${between}${name}:${hash}${end}`).join('')
        expect(usersOf(text)).toEqual(written)
      }),
    )
  })

  it('never throws, and has accepted hashes only', () => {
    const part = fc.constantFrom(
      '$2y$',
      '$argon2id$',
      'v=19$',
      'm=8,t=1,p=1$',
      ':',
      '\n',
      '#',
      'a',
      '$',
      '05$',
      bcrypt,
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(part).map((parts) => parts.join('')),
        ),
        (text) => {
          const parsed = parseHtpasswd(text)
          if (parsed.kind === 'invalid') return
          for (const [name, hash] of parsed.users) {
            expect(name).not.toContain(':')
            expect(hash).toMatch(/^\$(2[aby]|argon2(id|i|d))\$/)
          }
        },
      ),
    )
  })
})
