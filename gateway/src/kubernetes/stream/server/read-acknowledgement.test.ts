import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readAcknowledgement } from './read-acknowledgement.ts'

function read(text: string) {
  return readAcknowledgement(Readable.from([Buffer.from(text)]))
}

describe('readAcknowledgement', () => {
  it('reads the serving and the refused version', async () => {
    expect(await read('{"serving":"a","refused":{"version":"b","errors":["port in use"]}}')).toEqual({
      kind: 'acknowledgement',
      serving: 'a',
      refused: { version: 'b', errors: ['port in use'] },
    })
  })

  it('limits and escapes errors', async () => {
    const errors = Array.from({ length: 50 }, () => `\u001b[31m${'x'.repeat(1_000)}`)
    const result = await read(JSON.stringify({ refused: { version: 'b', errors } }))
    const lines = result.kind === 'acknowledgement' ? (result.refused?.errors ?? []) : []
    expect(lines).toHaveLength(20)
    expect(lines[0]?.length).toBeLessThanOrEqual(500)
    expect(lines[0]).not.toContain('\u001b')
  })

  it.each([
    ['[[[[', 'the acknowledgement must be a JSON object'],
    ['[]', 'the acknowledgement must be a JSON object'],
    ['{"serving":1}', 'serving must be a version'],
    ['{"refused":{"version":"b"}}', 'refused must have a version and a list of texts as errors'],
    [
      '{"refused":{"version":"b","errors":[{"toString":1}]}}',
      'refused must have a version and a list of texts as errors',
    ],
    [
      `{"refused":{"version":"b","errors":[${'['.repeat(20_000)}${']'.repeat(20_000)}]}}`,
      'refused must have a version and a list of texts as errors',
    ],
  ])('refuses invalid report %#', async (text, message) => {
    expect(await read(text)).toEqual({ kind: 'refused', status: 400, message })
  })

  it('refuses a large report and leaves the stream open for the response', async () => {
    const request = Readable.from([Buffer.alloc(100_000), Buffer.alloc(1)])
    expect(await readAcknowledgement(request)).toMatchObject({ kind: 'refused', status: 413 })
    expect(request.destroyed).toBe(false)
  })
})
