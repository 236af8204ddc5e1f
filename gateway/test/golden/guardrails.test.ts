import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apis } from '../fixtures/guardrail-streams.ts'
import { fixtureGuards, masking, pass, sentTo, webhookGuard } from '../fixtures/guardrails.ts'

/**
 * Bodies in which a webhook replaces every `mask` by `****`: inputs are written by hand in the form of the
 * real APIs. UPDATE_GOLDEN=1 writes the outputs, to be reviewed before commit.
 */
const update = process.env['UPDATE_GOLDEN'] === '1'
const root = join(import.meta.dirname, 'guardrails')

describe.each(apis)('golden guardrails/%s', (api) => {
  const given = (file: string) => readFileSync(join(root, api, file), 'utf8')

  it('request', async () => {
    const guards = fixtureGuards({ request: [webhookGuard] }, masking)
    const { asked = '' } = await pass(guards, { api, request: given('request.json') })
    compare(api, 'request-shown.json', indented(sentTo(guards.calls[0])))
    compare(api, 'request-masked.json', asked)
  })

  it('reply', async () => {
    const guards = fixtureGuards({ response: [webhookGuard] }, masking)
    const { text } = await pass(guards, { api, answer: given('reply.json') })
    compare(api, 'reply-shown.json', indented(sentTo(guards.calls[0])))
    compare(api, 'reply-masked.json', text)
  })

  it.each(['buffered', 'windowed'] as const)('stream, %s', async (streaming) => {
    const guards = fixtureGuards({ response: [webhookGuard], streaming }, masking)
    const { text } = await pass(guards, { api, answer: [given('stream.txt')] })
    compare(api, 'stream-masked.txt', text)
  })
})

function compare(api: string, file: string, actual: string): void {
  const path = join(root, api, file)
  if (update) writeFileSync(path, actual)
  expect(actual).toBe(readFileSync(path, 'utf8'))
}

function indented(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
