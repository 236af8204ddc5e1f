import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureGuards, jsonReply, pass, sentTo } from '../../../../../test/fixtures/guardrails.ts'
import { parseJsonObject } from '../../../../lib/json/json.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { CheckFailure } from '../../guard.ts'
import { checkPresidio, type PresidioConfig } from './config.ts'
import { maskEntities, readEntities } from './spans.ts'

const analyzer = { host: 'analyzer.test:5002' }
const chat = (...contents: string[]) => ({
  model: 'm',
  messages: contents.map((content) => ({ role: 'user', content })),
})

/** Finds mail addresses as the analyzer does: with offsets in code points. */
function analyze(request: OutgoingRequest): Reply {
  const text = textOf(request)
  const points = (end: number) => [...text.slice(0, end)].length
  const found = [...text.matchAll(/\w+@\w+\.\w+/g)].map(({ index, 0: match }) => ({
    analysis_explanation: null,
    end: points(index + match.length),
    entity_type: 'EMAIL_ADDRESS',
    score: 1,
    start: points(index),
  }))
  return jsonReply(found)
}

function textOf(request: OutgoingRequest): string {
  const sent = sentTo(request)
  return typeof sent === 'object' && sent !== null && 'text' in sent ? String(sent.text) : ''
}

async function ask(presidio: Partial<PresidioConfig>, content: string, answer = analyze) {
  const guards = fixtureGuards({ request: [{ presidio: { analyzer, ...presidio } }] }, answer)
  return { ...(await pass(guards, { request: chat(content) })), calls: guards.calls }
}

function contentOf(asked: string | undefined): unknown {
  const messages = parseJsonObject(asked ?? '')?.['messages']
  return Array.isArray(messages) ? messages.map((message) => Object(message).content) : undefined
}

describe('presidio', () => {
  it('sends each text to the analyzer with the settings, and masks the entities', async () => {
    const settings = { language: 'de', entities: ['EMAIL_ADDRESS'], scoreThreshold: 0.5 }
    const guards = fixtureGuards({ request: [{ presidio: { analyzer, ...settings } }] }, analyze)
    const { asked } = await pass(guards, { request: chat('mail a@b.co', '', 'nothing') })
    expect(contentOf(asked)).toEqual(['mail <EMAIL_ADDRESS>', '', 'nothing'])
    expect(guards.calls.map(({ origin, path, method }) => `${method} ${origin}${path}`)).toEqual([
      'POST http://analyzer.test:5002/analyze',
      'POST http://analyzer.test:5002/analyze',
    ])
    expect(sentTo(guards.calls[0])).toEqual({
      text: 'mail a@b.co',
      language: 'de',
      entities: ['EMAIL_ADDRESS'],
      score_threshold: 0.5,
    })
  })

  it('masks by offsets in code points', async () => {
    const { asked } = await ask({}, '👩‍👩‍👧 𝒳 e\u0301 a@b.co 🙂 c@d.co 漢')
    expect(contentOf(asked)).toEqual(['👩‍👩‍👧 𝒳 e\u0301 <EMAIL_ADDRESS> 🙂 <EMAIL_ADDRESS> 漢'])
  })

  it('ignores entities below the threshold', async () => {
    const low = () => jsonReply([{ entity_type: 'PERSON', start: 0, end: 3, score: 0.4 }])
    expect(contentOf((await ask({ scoreThreshold: 0.5 }, 'Ann', low)).asked)).toEqual(['Ann'])
    expect(contentOf((await ask({ scoreThreshold: 0.4 }, 'Ann', low)).asked)).toEqual(['<PERSON>'])
  })

  it('rejects, or audits', async () => {
    expect(await ask({ action: 'reject' }, 'a@b.co')).toMatchObject({ status: 403, asked: undefined })
    const audited = await ask({ action: 'audit' }, 'a@b.co')
    expect(contentOf(audited.asked)).toEqual(['a@b.co'])
    expect(audited.exchange.guards).toMatchObject([
      { outcome: 'audit_reject', reason: 'found EMAIL_ADDRESS' },
    ])
  })

  it('has the anonymizer replace the entities, with offsets in code points', async () => {
    const anonymizers = { DEFAULT: { type: 'replace', new_value: 'X' } }
    const both = (request: OutgoingRequest) =>
      request.path === '/analyze' ? analyze(request) : jsonReply({ text: '🙂 X', items: [] })
    const outcome = await ask(
      { anonymizer: { host: 'anonymizer.test:5001' }, anonymizers },
      '🙂 a@b.co',
      both,
    )
    expect(contentOf(outcome.asked)).toEqual(['🙂 X'])
    expect(outcome.calls[1]?.origin).toBe('http://anonymizer.test:5001')
    expect(sentTo(outcome.calls[1])).toEqual({
      text: '🙂 a@b.co',
      analyzer_results: [{ entity_type: 'EMAIL_ADDRESS', start: 2, end: 8, score: 1 }],
      anonymizers,
    })
  })

  it.each([
    ['an object', { error: 'No text provided' }],
    ['a start beyond the text', [{ entity_type: 'PERSON', start: 3, end: 9, score: 1 }]],
    ['an empty range', [{ entity_type: 'PERSON', start: 1, end: 1, score: 1 }]],
    ['a negative offset', [{ entity_type: 'PERSON', start: -1, end: 1, score: 1 }]],
    ['a fraction', [{ entity_type: 'PERSON', start: 0.5, end: 1, score: 1 }]],
    ['no type', [{ start: 0, end: 1, score: 1 }]],
    ['a type with markup', [{ entity_type: '<script>', start: 0, end: 1, score: 1 }]],
    ['no score', [{ entity_type: 'PERSON', start: 0, end: 1 }]],
  ])('fails for a response with %s', async (_, response) => {
    expect(await ask({}, 'Ann', () => jsonReply(response))).toMatchObject({ status: 503, asked: undefined })
  })

  it('fails for texts beyond the limits of the analyzer', async () => {
    expect((await ask({}, 'x'.repeat(1_000_001))).status).toBe(503)
    const open = await ask({ failureMode: 'failOpen' }, 'x'.repeat(1_000_001))
    expect(open).toMatchObject({ status: 200, calls: [] })
  })

  it('refuses settings of an anonymizer without one', () => {
    const found: string[] = []
    const report = (path: readonly (string | number)[], message: string) =>
      found.push(`${path.join('.')}: ${message}`)
    checkPresidio({ analyzer: { host: 'a:0' }, anonymizers: {} }, [], report)
    checkPresidio({ analyzer, anonymizer: { backend: '/none' }, action: 'reject' }, [], report)
    expect(found).toEqual([
      'analyzer.host: port 0 cannot be connected to',
      'anonymizers: needs an anonymizer',
      'anonymizer.backend: no backend is named "none"',
      'anonymizer: has no effect with action reject',
    ])
  })
})

describe('entities', () => {
  const entity = (start: number, end: number, score = 1) => ({ entity_type: 'E', start, end, score })

  it('cover the same characters as in Python', () => {
    const inText = fc.string({ unit: 'binary', maxLength: 40 }).chain((text) => {
      const length = [...text].length
      const offset = fc.integer({ min: 0, max: length })
      return fc.tuple(fc.constant(text), offset, offset)
    })
    fc.assert(
      fc.property(inText, ([text, one, other]) => {
        fc.pre(one !== other)
        const [start, end] = [Math.min(one, other), Math.max(one, other)]
        const characters = [...text]
        expect(maskEntities(text, readEntities([entity(start, end)], text))).toBe(
          `${characters.slice(0, start).join('')}<E>${characters.slice(end).join('')}`,
        )
      }),
    )
  })

  it('that overlap become one, with the type of the highest score', () => {
    const found = [
      { entity_type: 'URL', start: 2, end: 6, score: 0.5 },
      { entity_type: 'EMAIL_ADDRESS', start: 0, end: 6, score: 1 },
      { entity_type: 'PERSON', start: 5, end: 8, score: 0.9 },
      { entity_type: 'PERSON', start: 8, end: 9, score: 0.9 },
    ]
    const text = 'a@b.co123456'
    expect(maskEntities(text, readEntities(found, text))).toBe('<EMAIL_ADDRESS><PERSON>456')
  })

  it('outside of the text fail', () => {
    expect(() => readEntities([entity(0, 2)], '🙂')).toThrow(CheckFailure)
    expect(readEntities([entity(0, 1)], '🙂')).toMatchObject([{ start: 0, end: 2 }])
  })
})
