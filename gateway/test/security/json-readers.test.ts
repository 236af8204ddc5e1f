import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type JsonReader, jsonReaders } from '../support/json-readers/json-readers.ts'
import { aliceKey, aliceRecord, openAiModel } from '../support/llm-config.ts'
import { member } from '../support/mock-server.ts'

/** Bodies as text, because the shapes are about names and bytes. */
const message = (content: string) => `[{"role":"user","content":${content}}]`
const hello = message('"hello"')

type Shape = { name: string; body: string; contentType?: string | undefined; passes?: true }

const shapes: Shape[] = [
  { name: 'a plain request', body: `{"model":"M","max_tokens":5,"messages":${hello}}`, passes: true },
  {
    name: 'parts',
    body: `{"model":"M","messages":${message('[{"type":"text","text":"hello"}]')}}`,
    passes: true,
  },
  {
    name: 'UTF-8 by name',
    body: `{"model":"M","messages":${hello}}`,
    contentType: 'application/json; charset=UTF-8',
    passes: true,
  },
  { name: 'escaped names', body: `{"\\u006dodel":"M","messages":${hello}}`, passes: true },
  {
    name: 'free JSON',
    body: `{"model":"M","messages":${hello},"metadata":{"Model":"a","model":"b"}}`,
    passes: true,
  },
  {
    name: 'another letter',
    body: `{"model":"M","messages":${hello},"\u041c\u043e\u0434el":"x"}`,
    passes: true,
  },
  { name: 'Model', body: `{"model":"M","Model":"forbidden","messages":${hello}}` },
  { name: 'Model first', body: `{"Model":"forbidden","model":"M","messages":${hello}}` },
  { name: 'MODEL, escaped', body: `{"model":"M","\\u004dodel":"forbidden","messages":${hello}}` },
  { name: 'Messages', body: `{"model":"M","messages":${hello},"Messages":${message('"SECRET"')}}` },
  { name: 'long s', body: `{"model":"M","messages":${hello},"me\u017f\u017fages":${message('"SECRET"')}}` },
  { name: 'Kelvin sign', body: `{"model":"M","max_tokens":5,"max_to\u212aens":999999,"messages":${hello}}` },
  { name: 'Max_Tokens', body: `{"model":"M","max_tokens":5,"Max_Tokens":999999,"messages":${hello}}` },
  {
    name: 'Content',
    body: `{"model":"M","messages":[{"role":"user","content":"hello","Content":"SECRET"}]}`,
  },
  {
    name: 'Text',
    body: `{"model":"M","messages":${message('[{"type":"text","text":"hello","Text":"SECRET"}]')}}`,
  },
  { name: 'the same key twice', body: `{"model":"M","model":"forbidden","messages":${hello}}` },
  {
    name: 'UTF-7',
    body: `{"model":"M","messages":${message('"+AFMARQBDAFIARQBU-"')}}`,
    contentType: 'application/json; charset=utf-7',
  },
  {
    name: 'UTF-7, quoted',
    body: `{"model":"M","messages":${message('"+AFMARQBDAFIARQBU-"')}}`,
    contentType: 'application/json;charset="UTF-7"',
  },
  {
    name: 'two charsets',
    body: `{"model":"M","messages":${message('"+AFMARQBDAFIARQBU-"')}}`,
    contentType: 'application/json; charset=utf-8; charset=utf-7',
  },
  { name: 'a mark in front', body: `\ufeff{"model":"M","messages":${hello}}` },
  { name: 'a comment', body: `{"model":"M",/**/"messages":${hello}}` },
  { name: 'NaN', body: `{"model":"M","max_tokens":NaN,"messages":${hello}}` },
]

const installed = jsonReaders.filter(({ isInstalled }) => isInstalled)
/** Of a name for which `max_tokens` keeps its name. */
const modelOf = (reader: JsonReader) => `reader-${jsonReaders.indexOf(reader)}`
let gateway: Gateway

beforeAll(async () => {
  const models = await Promise.all(
    installed.map(async (reader) => openAiModel(modelOf(reader), await reader.start())),
  )
  gateway = await startGateway(
    {
      llm: {
        models,
        policies: { apiKey: { mode: 'strict', keys: [{ ...aliceRecord, allowedModels: ['reader-*'] }] } },
        guardrails: { request: [{ regex: { action: 'reject', rules: [{ pattern: 'SECRET' }] } }] },
      },
    },
    { lifetime: 'file' },
  )
}, 180_000)

describe.each(jsonReaders)('$name', (reader) => {
  it.skipIf(!reader.isInstalled).each(shapes)('reads what was checked: $name', async (shape) => {
    const { body, contentType = 'application/json', passes } = shape
    const model = modelOf(reader)
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': contentType, authorization: `Bearer ${aliceKey}` },
      body: Buffer.from(body.replace('"M"', JSON.stringify(model))),
    })
    const answer: unknown = await response.json()
    if (!passes) {
      expect([400, 415]).toContain(response.status)
      return
    }
    expect(response.status).toBe(200)
    const content = String(member(answer, 'choices', 0, 'message', 'content'))
    const maxTokens = body.includes('max_tokens') ? 5 : 0
    expect(JSON.parse(content)).toEqual({ model, max_tokens: maxTokens, texts: ['hello'] })
  })
})
