import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../pipeline/fixtures.ts'
import { hasCheckDigit } from './regex/builtins.ts'
import { checkRegex, compileRegex, type RegexConfig } from './regex.ts'

const rejection = { status: 403, body: 'no', headers: {} }

function ask(config: RegexConfig, content: string) {
  const { check } = compileRegex(config, rejection)
  return check({ texts: [{ role: 'user', content }], exchange: fixtureExchange(), replyHeaders: undefined })
}

function masked(config: RegexConfig, content: string) {
  const verdict = ask(config, content)
  if (verdict instanceof Promise) throw new Error('asked somebody')
  return verdict.kind === 'modify' ? verdict.contents[0] : content
}

const builtin = (name: NonNullable<RegexConfig['rules'][number]['builtin']>): RegexConfig => ({
  rules: [{ builtin: name }],
})

describe('a regex guard', () => {
  it.each([
    [
      'email',
      'write to Jo.Doe+x@mail.example.co.uk, or jo@täst.de!',
      'write to <EMAIL_ADDRESS>, or <EMAIL_ADDRESS>!',
    ],
    ['email', 'a@b, @name, x@ and foo@bar are none', undefined],
    [
      'phoneNumber',
      'call (555) 123-4567 or 555-123-4567 or 1-555-123-4567',
      'call <PHONE_NUMBER> or <PHONE_NUMBER> or <PHONE_NUMBER>',
    ],
    ['phoneNumber', 'call +49 30 1234567 or +14155552671.', 'call <PHONE_NUMBER> or <PHONE_NUMBER>.'],
    ['phoneNumber', 'order 1234567 of 2026-11-21, 10.0.0.1, id 555-123-45678', undefined],
    ['creditCard', 'card 4111 1111 1111 1111, 5500-0000-0000-0004.', 'card <CREDIT_CARD>, <CREDIT_CARD>.'],
    ['creditCard', 'not 4111 1111 1111 1112, 0000 0000 0000 0000, 12345678901234567890123', undefined],
    [
      'creditCard',
      '2 of 4111 1111 1111 1111 123, 4111111111111111 12/27, 5 x 5500-0000-0000-0004-abc',
      '2 of <CREDIT_CARD> 123, <CREDIT_CARD> 12/27, 5 x <CREDIT_CARD>-abc',
    ],
    ['creditCard', '12 4111111111111111 7 378282246310005', '12 <CREDIT_CARD> 7 <CREDIT_CARD>'],
    ['ssn', 'ssn 078-05-1120 and 078 05 1120', 'ssn <SSN> and <SSN>'],
    ['ssn', 'not 000-12-3456, 666-12-3456, 912-12-3456, 123-00-1234, 123-12-0000, 123456789', undefined],
    ['caSin', 'sin 130 692 544 is one, 146 454 286 is none', 'sin <CA_SIN> is one, 146 454 286 is none'],
  ] as const)('finds %s in %j', (name, text, expected) => {
    expect(masked(builtin(name), text)).toBe(expected ?? text)
  })

  it('applies its rules in order, each to what the ones before made of it', () => {
    const config: RegexConfig = {
      rules: [{ pattern: 'ACME-[0-9]+' }, { builtin: 'email' }, { pattern: '<masked> ' }],
    }
    expect(masked(config, 'ACME-12 a@b.co')).toBe('<masked><EMAIL_ADDRESS>')
  })

  it('does not take a place between characters for a find', () => {
    expect(ask({ action: 'reject', rules: [{ pattern: '\\b' }] }, 'some words')).toEqual({ kind: 'allow' })
    expect(ask({ action: 'reject', rules: [{ pattern: '\\bx|$' }] }, 'an x')).toMatchObject({
      kind: 'reject',
    })
  })

  it('rejects or only notes where told to', () => {
    const rules: RegexConfig['rules'] = [{ builtin: 'email' }]
    expect(ask({ action: 'reject', rules }, 'a@b.co')).toMatchObject({ kind: 'reject', rejection })
    expect(ask({ action: 'reject', rules }, 'nothing')).toEqual({ kind: 'allow' })
    expect(compileRegex({ action: 'audit', rules }, rejection)).toMatchObject({
      audit: true,
      failOpen: false,
    })
  })

  it.each([
    ['email', 'a'.repeat(200_000)],
    ['email', 'a@'.repeat(100_000)],
    ['email', `a@${'a.'.repeat(100_000)}`],
    ['phoneNumber', `+1 ${'1 '.repeat(100_000)}`],
    ['phoneNumber', `+${'1'.repeat(200_000)}`],
    ['creditCard', '4 '.repeat(100_000)],
    ['ssn', '123-12-'.repeat(30_000)],
  ] as const)('reads hostile text for %s in time', (name, text) => {
    const startedAt = performance.now()
    masked(builtin(name), text)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  it('takes patterns of the configuration that would run away elsewhere', () => {
    const startedAt = performance.now()
    masked({ rules: [{ pattern: '(a+)+$' }] }, `${'a'.repeat(20_000)}b`)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })

  it('is refused with patterns that do not compile or match nothing at all', () => {
    const issues: string[] = []
    checkRegex({ rules: [{ pattern: '(' }, { pattern: 'a*' }, { pattern: 'a' }] }, (path, message) =>
      issues.push(`${path.join('.')}: ${message}`),
    )
    expect(issues).toHaveLength(2)
    expect(issues[1]).toBe('rules.1.pattern: matches a text with nothing in it')
  })
})

describe('check digits', () => {
  it.each([
    ['4242424242424242', true],
    ['378282246310005', true],
    ['4242424242424241', false],
    ['0000000000000000', false],
  ])('of %s hold: %s', (digits, holds) => expect(hasCheckDigit(digits)).toBe(holds))
})
