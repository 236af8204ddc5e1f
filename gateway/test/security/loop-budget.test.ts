import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { startMeasured } from '../support/loop-budget.ts'
import { expectBelow } from '../support/time-bound.ts'

/**
 * Requests that would occupy the event loop: each must be refused or answered within a budget of CPU time.
 */

/**
 * The promise is 50 ms on a machine of today with warm code (`npm run bench -- --only loop`). CPU time in a
 * test with cold code on a machine that shares its cores is up to four times as much; each of these took
 * seconds without the budgets.
 */
const budgetMs = 250

const members = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')

let gateway: Gateway
let during: (work: () => Promise<unknown>) => Promise<number>
beforeAll(async () => {
  const measured = await startMeasured(
    {
      llm: { models: [{ name: '*', provider: 'echo' }] },
      mcp: { targets: [{ name: 'a', mcp: { host: 'http://127.0.0.1:9/mcp' } }] },
    },
    { lifetime: 'file' },
  )
  gateway = measured.gateway
  during = measured.during
})

const mcpHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function answerOf(url: string, body: string): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { method: 'POST', headers: mcpHeaders, body })
  return { status: response.status, text: await response.text() }
}

describe('structure of JSON', () => {
  const shapes: [string, string, string][] = [
    ['900,000 keys of one object', `{${members(900_000)}}`, 'an object of more than 10000 members'],
    ['20,000 keys of one object', `{${members(20_000)}}`, 'an object of more than 10000 members'],
    ['lists of 2,000,000 items', `[${'0,'.repeat(2_000_000)}0]`, 'more than 1000000 list items'],
    ['300,000 empty objects', `[${'{},'.repeat(300_000)}0]`, 'more than 100000 objects, arrays and members'],
    ['300 levels', `${'['.repeat(300)}${']'.repeat(300)}`, 'nested deeper than 200 levels'],
  ]

  async function isRefused(
    url: string,
    body: string,
    { status, reason = '' }: { status: number; reason?: string },
  ): Promise<void> {
    await expectBelow(budgetMs, () =>
      during(async () => {
        const answer = await answerOf(url, body)
        expect(answer).toEqual({ status, text: expect.stringContaining(reason) })
      }),
    )
  }

  it.each(shapes)('of an LLM body: %s is refused', async (_, value, reason) => {
    const body = `{"model":"m","messages":[],"x":${value}}`
    await isRefused(`${gateway.url}/v1/chat/completions`, body, { status: 400, reason })
  })

  it.each(shapes)('of an MCP body: %s is refused', async (_, value, reason) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":${value}}}`
    // Without a session a body is refused by its size first.
    const tooLarge = body.length > 64 * 1024
    await isRefused(gateway.mcpUrl, body, tooLarge ? { status: 413 } : { status: 400, reason })
  })

  it('has the limits of the configuration', async () => {
    const narrow = await startGateway({
      llm: { models: [{ name: '*', provider: 'echo' }] },
      frontendPolicies: { http: { json: { maxMembers: 4, maxElements: 12, maxDepth: 3 } } },
    })
    const ask = (rest: string) =>
      answerOf(
        `${narrow.url}/v1/chat/completions`,
        `{"model":"m","messages":[{"role":"user","content":"a"}]${rest}}`,
      )
    expect((await ask('')).status).toBe(200)
    expect(await ask(',"a":1,"b":2,"c":3')).toMatchObject({ status: 400 })
    expect(await ask(`,"a":[${'{},'.repeat(12)}{}]`)).toMatchObject({ status: 400 })
    expect(await ask(',"a":[[[]]]')).toMatchObject({ status: 400 })
  })
})

describe('large bodies that are accepted', () => {
  const size = 1.5 * 1024 * 1024
  const contents: [string, string, string][] = [
    ['escaped quotes', '\\"'.repeat(size / 2), ''],
    ['letters of three bytes', '漢'.repeat(size / 3), ''],
    ['1,000,000 items', 'a', `,"x":[${'0,'.repeat(990_000)}0]`],
    ['90,000 members', 'a', `,"x":[${`{"model":0},`.repeat(45_000)}0]`],
  ]

  it.each(contents)('of %s are read in slices', async (_, content, rest) => {
    const body = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"${content}"}]${rest}}`
    await expectBelow(budgetMs, () =>
      during(async () => {
        expect(await answerOf(`${gateway.url}/v1/chat/completions`, body)).toMatchObject({ status: 200 })
      }),
    )
  })
})

describe('guards that look for patterns', () => {
  const size = 1024 * 1024
  const guarded = (regex: object) => ({
    llm: {
      models: [{ name: '*', provider: 'echo' }],
      guardrails: { request: [{ regex }] },
    },
  })
  const ask = (url: string, content: string) =>
    answerOf(
      `${url}/v1/chat/completions`,
      JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content }] }),
    )

  it('search large texts beside the event loop', async () => {
    const { gateway, during } = await startMeasured(
      guarded({
        rules: [{ pattern: 'ACME-[0-9]{6}' }, { pattern: '(?:a?){30}a{30}' }, { builtin: 'creditCard' }],
      }),
    )
    // An eighth of the size: a search has a limit of 10 s, which a larger text exceeds on a busy machine.
    for (const text of ['ACME-123456 ', 'a', '1 ', 'words ']) {
      await expectBelow(budgetMs, () =>
        during(async () => {
          const answer = await ask(gateway.url, text.repeat(size / 8 / text.length))
          expect(answer).toMatchObject({ status: 200 })
        }),
      )
    }
  })

  it('fail where there is too much to search, as configured', async () => {
    const rules = Array.from({ length: 256 }, (_, index) => ({ pattern: `x${index}` }))
    const closed = await startGateway(guarded({ rules }))
    expect((await ask(closed.url, 'a'.repeat(size + 1))).status).toBe(503)
    const open = await startGateway(guarded({ rules, failureMode: 'failOpen' }))
    expect((await ask(open.url, 'a'.repeat(size + 1))).status).toBe(200)
  })
})
