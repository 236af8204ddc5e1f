import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { PromptCachingConfig } from './config.ts'
import { compilePromptCaching } from './prompt-caching.ts'

const marker = { type: 'ephemeral' }
const long = Array.from({ length: 800 }, (_, index) => `w${index}`).join(' ')

function cached(config: PromptCachingConfig, body: JsonObject): JsonObject {
  return compilePromptCaching(config)(body, 'messages')
}

const turns = ['a', 'b', 'c'].map((content, index) => ({ role: index === 1 ? 'assistant' : 'user', content }))

describe('compilePromptCaching', () => {
  it('marks the system prompt from a number of tokens', () => {
    const { system } = cached({}, { system: long, messages: [] })
    expect(system).toEqual([{ type: 'text', text: long, cache_control: marker }])
    const short = { system: 'short', messages: [] }
    expect(cached({}, short)).toBe(short)
    expect(cached({ minTokens: 1 }, short)).toMatchObject({ system: [{ cache_control: marker }] })
    expect(cached({ cacheSystem: false, minTokens: 1 }, short)).toBe(short)
  })

  it('marks the last part of a system prompt in parts', () => {
    const system = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    expect(cached({ minTokens: 0 }, { system })['system']).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', cache_control: marker },
    ])
  })

  it('marks the message before the last one, or an earlier one', () => {
    const marked = (offset: number) => cached({ cacheMessageOffset: offset }, { messages: turns })['messages']
    const text = (content: string) => [{ type: 'text', text: content, cache_control: marker }]
    expect(marked(0)).toEqual([turns[0], { role: 'assistant', content: text('b') }, turns[2]])
    expect(marked(1)).toEqual([{ role: 'user', content: text('a') }, turns[1], turns[2]])
    expect(marked(9)).toEqual(marked(1))
  })

  it('leaves a single message', () => {
    const body = { messages: [turns[0] ?? {}] }
    expect(cached({}, body)).toBe(body)
  })

  it('marks no thinking block and no empty text', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: '' },
      { type: 'thinking', thinking: 't', signature: 's' },
    ]
    const { messages } = cached(
      {},
      {
        messages: [
          { role: 'assistant', content },
          { role: 'user', content: 'b' },
        ],
      },
    )
    expect(messages).toEqual([
      { role: 'assistant', content: [{ ...content[0], cache_control: marker }, content[1], content[2]] },
      { role: 'user', content: 'b' },
    ])
  })

  it('marks tools on request', () => {
    const tools = [{ name: 'a' }, { name: 'b' }]
    expect(cached({}, { tools })['tools']).toBe(tools)
    expect(cached({ cacheTools: true }, { tools })['tools']).toEqual([
      { name: 'a' },
      { name: 'b', cache_control: marker },
    ])
  })

  it('counts the words of a prompt up to the threshold only', () => {
    let reads = 0
    const rest: JsonObject = Object.defineProperty({ type: 'text' }, 'text', {
      enumerable: true,
      get() {
        reads += 1
        return 'more'
      },
    })
    const last = { type: 'text', text: 'end' }
    const body = { system: [{ type: 'text', text: 'word '.repeat(788) }, rest, last], messages: [] }
    const marked = cached({}, body)
    expect(reads).toBe(0)
    expect(marked.system).toMatchObject([{}, {}, { cache_control: marker }])
    const short = { system: [{ type: 'text', text: 'word '.repeat(787) }, last], messages: [] }
    expect(cached({ minTokens: 1025 }, short)).toBe(short)
  })

  it('preserves markers of the client, up to four in total', () => {
    const own = { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }
    const body = {
      system: [own],
      messages: [{ role: 'user', content: [own] }, turns[1] ?? {}, turns[2] ?? {}],
    }
    expect(cached({ minTokens: 0 }, body)).toMatchObject({
      system: [own],
      messages: [{ content: [own] }, { content: [{ cache_control: marker }] }, turns[2]],
    })
    const full = { system: [own, own, own, own], messages: turns }
    expect(cached({ minTokens: 0, cacheTools: true }, full)).toBe(full)
  })

  it.each(['chat', 'responses', 'embeddings', 'completions'] as const)(
    'leaves requests of %s',
    (endpoint) => {
      const body = { system: long, messages: turns }
      expect(compilePromptCaching({})(body, endpoint)).toBe(body)
    },
  )

  it('leaves bodies of an unexpected shape', () => {
    for (const body of [{ system: 5, messages: 'x', tools: {} }, { messages: [1, null] }] as JsonObject[]) {
      expect(cached({ cacheTools: true, minTokens: 0 }, body)).toBe(body)
    }
  })
})

describe('compilePromptCaching for the Converse API', () => {
  const point = { cachePoint: { type: 'default' } }
  const converse = {
    toolConfig: { tools: [{ toolSpec: { name: 'f' } }] },
    system: [{ text: long }],
    messages: [
      { role: 'user', content: [{ text: 'a' }] },
      { role: 'assistant', content: [{ text: 'b' }] },
      { role: 'user', content: [{ text: 'c' }] },
    ],
  }
  const pointed = (config: PromptCachingConfig, body: JsonObject = converse) =>
    compilePromptCaching(config)(body, 'converse')

  it('adds points behind tools, system and the message before the last one', () => {
    expect(pointed({ cacheTools: true })).toEqual({
      toolConfig: { tools: [{ toolSpec: { name: 'f' } }, point] },
      system: [{ text: long }, point],
      messages: [
        converse.messages[0],
        { role: 'assistant', content: [{ text: 'b' }, point] },
        converse.messages[2],
      ],
    })
    expect(pointed({ cacheSystem: false, cacheMessages: false })).toEqual(converse)
  })

  it('retains points of the client, and adds no more than four', () => {
    const content = [{ text: 'a' }, point, { text: 'b' }, point, { text: 'c' }, point]
    const body = { ...converse, messages: [{ role: 'user', content }, ...converse.messages.slice(1)] }
    expect(pointed({ cacheTools: true }, body)).toMatchObject({
      toolConfig: { tools: [{}, point] },
      system: [{ text: long }],
      messages: body.messages,
    })
    const own = { ...converse, system: [{ text: long }, point] }
    expect(pointed({ cacheMessages: false }, own)).toEqual(own)
  })
})
