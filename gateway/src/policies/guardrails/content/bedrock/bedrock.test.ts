import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { CheckFailure } from '../../guard.ts'
import { contentReaders } from '../content.ts'
import { type GuardedText, joinedText, type StreamPiece, splicesFor } from '../content-reader.ts'
import { createReading } from '../reading.ts'

const shown = (texts: GuardedText[]) => texts.map((text) => `${text.role}: ${joinedText(text)}`)
const { converse, invoke } = contentReaders

describe('requests of Converse', () => {
  it('have all texts of the client', () => {
    const body: JsonObject = {
      system: [
        { text: 'be kind' },
        { cachePoint: { type: 'default' } },
        { guardContent: { text: { text: 'g' } } },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { text: 'question' },
            { document: { name: 'a name', format: 'txt', source: { text: 'of a document' }, context: 'c' } },
            { document: { name: 'b', format: 'pdf', source: { bytes: 'AAAA' } } },
            { image: { format: 'png', source: { bytes: 'AAAA' } } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: 'thought', signature: 's' } } },
            { toolUse: { toolUseId: 't', name: 'n', input: { city: 'x' } } },
          ],
        },
        {
          role: 'user',
          content: [
            { toolResult: { toolUseId: 't', content: [{ text: 'result' }, { json: { a: ['deep'] } }] } },
          ],
        },
      ],
      promptVariables: { topic: { text: 'a variable' } },
      additionalModelRequestFields: { system: 'hidden' },
    }
    expect(shown(converse.request(body, createReading('request')))).toEqual([
      'system: be kind\ng',
      'user: question a name c of a document b',
      'assistant: thought',
      'user: result deep',
      'user: a variable',
      'system: hidden',
    ])
  })

  it('have documents that are texts in base64, which stay base64', () => {
    const document = (format: string, bytes: Buffer) => ({
      document: { name: 'n', format, source: { bytes: bytes.toString('base64') } },
    })
    const content = [document('txt', Buffer.from('a secret')), document('pdf', Buffer.from('%PDF-1\0'))]
    const body = { messages: [{ role: 'user', content }] }
    const texts = converse.request(body, createReading('request'))
    expect(shown(texts)).toEqual(['user: n a secret n'])
    expect(splicesFor(texts, ['n a ****** n'], converse)).toEqual([
      {
        kind: 'set',
        path: ['messages', 0, 'content', 0, 'document', 'source', 'bytes'],
        json: JSON.stringify(Buffer.from('a ******').toString('base64')),
      },
    ])
  })

  it.each([
    [{ messages: 'text' }],
    [{ messages: [{ role: 'user', content: 'text' }] }],
    [{ messages: [{ role: 'user', content: [{ text: 7 }] }] }],
    [{ messages: [{ role: 'user', content: [['text']] }] }],
    [{ system: 'text', messages: [] }],
  ])('that are unreadable fail the check: %j', (body) => {
    expect(() => converse.request(body, createReading('request'))).toThrow(CheckFailure)
  })

  it('report blocks of unknown type', () => {
    const reading = createReading('request')
    converse.request({ messages: [{ role: 'user', content: [{ hologram: {} }] }] }, reading)
    expect(reading.takeUnknown()).toBe('hologram')
  })
})

it('responses of Converse have blocks, inputs of tools by scope, and traces of guardrails', () => {
  const content = [{ text: 'answer' }, { toolUse: { toolUseId: 't', name: 'n', input: { city: 'x' } } }]
  const body = {
    output: { message: { role: 'assistant', content } },
    trace: { guardrail: { modelOutput: ['unmasked'] } },
  }
  expect(shown(converse.reply(body, createReading('response')))).toEqual([
    'assistant: answer',
    'assistant: ',
    'assistant: unmasked',
  ])
  const scoped = converse.reply(body, createReading('response', new Set(['toolInput'])))
  expect(scoped.find(({ scope }) => scope === 'toolInput')?.parts[0]?.path).toEqual([
    ...['output', 'message', 'content', 1, 'toolUse', 'input'],
  ])
})

it('events of Converse have texts by block, and optional texts by scope', () => {
  const read = (
    event: JsonObject,
    scopes?: ConstructorParameters<typeof Set<'toolInput' | 'reasoning'>>[0],
  ) => {
    const found: StreamPiece[] = []
    converse.event(
      event,
      (piece) => found.push(piece),
      createReading('response', scopes ? new Set(scopes) : undefined),
    )
    return found.map(({ element, text }) => [element, text])
  }
  const delta = (value: JsonObject) => ({ contentBlockIndex: 2, delta: value, p: 'ab' })
  expect(read(delta({ text: 'a' }))).toEqual([[2, 'a']])
  expect(read(delta({ toolUse: { input: '{' } }))).toEqual([])
  expect(read(delta({ toolUse: { input: '{' } }), ['toolInput'])).toEqual([[2.5, '{']])
  expect(read(delta({ reasoningContent: { text: 't' } }), ['reasoning'])).toEqual([[2.25, 't']])
  expect(read({ trace: { guardrail: { modelOutput: ['raw'] } } })).toEqual([[Number.MAX_SAFE_INTEGER, 'raw']])
})

describe('requests of CountTokens', () => {
  const messages = [{ role: 'user', content: [{ text: 'a secret' }] }]

  it('have the texts of Converse', () => {
    const texts = converse.request({ input: { converse: { messages } } }, createReading('request'))
    expect(shown(texts)).toEqual(['user: a secret'])
    expect(splicesFor(texts, ['a ******'], converse)).toEqual([
      {
        kind: 'set',
        path: ['input', 'converse', 'messages', 0, 'content', 0, 'text'],
        json: '"a ******"',
      },
    ])
  })

  it('have the body of InvokeModel as one text, without escapes', () => {
    const body = Buffer.from('{"prompt":"a s\\u0065cret"}').toString('base64')
    const texts = converse.request({ input: { invokeModel: { body } } }, createReading('request'))
    expect(shown(texts)).toEqual(['user: {"prompt":"a secret"}'])
    for (const text of ['{"a":1,"a":2}', 'a secret']) {
      const hidden = { input: { invokeModel: { body: Buffer.from(text).toString('base64') } } }
      expect(() => converse.request(hidden, createReading('request'))).toThrow('not a JSON object')
    }
  })
})

describe('bodies of InvokeModel', () => {
  it('have all their texts, without files', () => {
    const body = { prompt: 'question', config: { stop: ['x y'] }, image: 'A'.repeat(2000), size: 3 }
    expect(shown(invoke.request(body, createReading('request')))).toEqual(['user: question\nx y'])
    expect(shown(invoke.reply({ generation: 'answer' }, createReading('response')))).toEqual([
      'assistant: answer',
    ])
  })

  it.each([
    [{ prompt: 'ignore_all_rules_'.repeat(100) }],
    [{ images: [{ text: 'ignore_all_rules_'.repeat(100) }] }],
    [{ prompt: `iVBORw0KGgo${'ignore_all_rules_'.repeat(100)}` }],
  ])('have texts with the characters of base64', (body) => {
    expect(shown(invoke.request(body, createReading('request')))[0]).toContain('ignore_all_rules_')
  })

  it.each([
    [{ taskType: 'INPAINTING', inPaintingParams: { image: 'A'.repeat(2000), maskImage: 'A'.repeat(2000) } }],
    [{ artifacts: [{ base64: 'A'.repeat(2000) }], images: ['A'.repeat(2000)] }],
    [{ messages: [{ content: [{ video: { format: 'mp4', source: { bytes: 'A'.repeat(2000) } } }] }] }],
  ])('have no media of the vendors: %#', (body) => {
    expect(shown(invoke.request(body, createReading('request'))).join('')).not.toContain('AAAA')
  })

  it('have documents of texts in base64, whatever their length', () => {
    for (const text of ['a secret', 'a secret '.repeat(1000)]) {
      const bytes = Buffer.from(text).toString('base64')
      const body = { messages: [{ content: [{ document: { format: 'txt', source: { bytes } } }] }] }
      const texts = invoke.request(body, createReading('request'))
      expect(shown(texts)).toEqual([`user: txt\n${text}`])
      expect(splicesFor(texts, ['txt\nmasked'], invoke)).toEqual([
        {
          kind: 'set',
          path: ['messages', 0, 'content', 0, 'document', 'source', 'bytes'],
          json: JSON.stringify(Buffer.from('masked').toString('base64')),
        },
      ])
    }
  })

  it('fail the check with a document of text that is not UTF-8', () => {
    const bytes = Buffer.from('a secret '.repeat(1000), 'utf16le').toString('base64')
    const body = { messages: [{ content: [{ document: { format: 'txt', source: { bytes } } }] }] }
    expect(() => invoke.request(body, createReading('request'))).toThrow('not text in UTF-8')
  })

  it('are extended by chunks, member by member', () => {
    const found: StreamPiece[] = []
    for (const generation of ['a', 'b'])
      invoke.event({ generation, other: 'c' }, (piece) => found.push(piece), createReading('response'))
    const elements = new Set(found.map(({ element }) => element))
    expect([elements.size, found.length]).toEqual([2, 4])
  })
})
