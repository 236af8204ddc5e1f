import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { cpuMsOf, expectBelow } from '../../../../../test/support/time-bound.ts'
import { type ThreadPool, ThreadPoolError } from '../../../../lib/scheduling/thread-pool.ts'
import { CheckFailure } from '../../guard.ts'
import { hasCheckDigit } from './builtins.ts'
import { checkRegex, compileRegex, type RegexConfig } from './regex.ts'
import { createSearchTask, searchTask } from './task.ts'

const rejection = { status: 403, body: 'no', headers: {} }

/** Runs tasks in this thread, through the copy that a thread would get. */
const threads: ThreadPool = {
  run: async (task, request) => {
    expect(task).toBe(searchTask)
    return structuredClone(createSearchTask()(structuredClone(request) as never))
  },
  close() {},
}

function ask(config: RegexConfig, content: string, pool: ThreadPool = threads) {
  const { check } = compileRegex(config, rejection, pool)
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

  it('applies its rules in order, each to the result of earlier ones', () => {
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

  it('rejects or audits when configured', () => {
    const rules: RegexConfig['rules'] = [{ builtin: 'email' }]
    expect(ask({ action: 'reject', rules }, 'a@b.co')).toMatchObject({ kind: 'reject', rejection })
    expect(ask({ action: 'reject', rules }, 'nothing')).toEqual({ kind: 'allow' })
    expect(compileRegex({ action: 'audit', rules }, rejection, threads)).toMatchObject({
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
  ] as const)('reads hostile text for %s in time', async (name, text) => {
    await expectBelow(1_000, () => cpuMsOf(async () => ask(builtin(name), text)))
  })

  it('takes patterns of the configuration that would run away elsewhere', async () => {
    const text = `${'a'.repeat(20_000)}b`
    await expectBelow(2_000, () => cpuMsOf(async () => ask({ rules: [{ pattern: '(a+)+$' }] }, text)))
  })

  describe('of a large text', () => {
    const many = (text: string) => text.repeat(20_000)
    const config: RegexConfig = { rules: [{ builtin: 'email' }, { pattern: 'ACME-[0-9]+' }] }

    it('searches on a thread, with the same result', async () => {
      expect(await ask(config, many('a@b.co ACME-1 '))).toMatchObject({
        kind: 'modify',
        contents: [many('<EMAIL_ADDRESS> <masked> ')],
      })
      expect(await ask(config, many('nothing '))).toEqual({ kind: 'allow' })
      expect(await ask({ ...config, action: 'reject' }, `${many('nothing ')}ACME-1`)).toMatchObject({
        kind: 'reject',
      })
      expect(await ask({ ...config, action: 'reject' }, many('nothing '))).toEqual({ kind: 'allow' })
    })

    it('searches many texts in batches, and puts the results together in order', async () => {
      const sizes: number[] = []
      const counting: ThreadPool = {
        ...threads,
        run(task, request, limits) {
          sizes.push(limits.bytes)
          return threads.run(task, request, limits)
        },
      }
      const contents = Array.from({ length: 9_000 }, (_, index) =>
        index % 4_500 === 7 ? 'ACME-1' : `text ${index}`,
      )
      const texts = contents.map((content) => ({ role: 'user', content }))
      const checkWith = (action: RegexConfig['action']) =>
        compileRegex({ ...config, action }, rejection, counting).check({
          texts,
          exchange: fixtureExchange(),
          replyHeaders: undefined,
        })
      expect(await checkWith('mask')).toMatchObject({
        kind: 'modify',
        contents: contents.map((content) => content.replace('ACME-1', '<masked>')),
      })
      expect(sizes).toHaveLength(9)
      expect(await checkWith('reject')).toMatchObject({ kind: 'reject' })
      expect(sizes).toHaveLength(10)
    })

    it('fails when no thread answers', async () => {
      const answers: ThreadPool['run'][] = [
        () => Promise.reject(new ThreadPoolError('too much work')),
        () => Promise.resolve({ found: true, masked: [] }),
        () => Promise.resolve('no'),
      ]
      for (const run of answers) {
        await expect(ask(config, many('nothing '), { run, close() {} })).rejects.toThrow(CheckFailure)
      }
    })

    it('fails beyond the bound of characters times rules', () => {
      const rules = Array.from({ length: 256 }, () => ({ pattern: 'x' }))
      expect(() => ask({ rules }, 'a'.repeat(1024 * 1024 + 1))).toThrow('text too long for its rules')
      expect(compileRegex({ rules, failureMode: 'failOpen' }, rejection, threads).failOpen).toBe(true)
      expect(compileRegex({ rules }, rejection, threads).failOpen).toBe(false)
    })
  })

  it('is refused with patterns that do not compile or match nothing at all', () => {
    const issues: string[] = []
    checkRegex({ rules: [{ pattern: '(' }, { pattern: 'a*' }, { pattern: 'a' }] }, (path, message) =>
      issues.push(`${path.join('.')}: ${message}`),
    )
    expect(issues).toHaveLength(2)
    expect(issues[1]).toBe('rules.1.pattern: must not match the empty text')
  })
})

describe('check digits', () => {
  it.each([
    ['4242424242424242', true],
    ['378282246310005', true],
    ['4242424242424241', false],
    ['0000000000000000', false],
  ])('of %s match: %s', (digits, holds) => expect(hasCheckDigit(digits)).toBe(holds))
})
