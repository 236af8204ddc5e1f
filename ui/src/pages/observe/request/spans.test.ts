import { describe, expect, it } from 'vitest'
import type { Explanation } from '../../../api/ledger/explanation.ts'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { spansOf } from './spans.ts'

const entry = { durationMs: 100, firstByteMs: 60 } as LogEntry

const explanation: Explanation = {
  times: {
    totalMs: 100,
    policiesMs: 5,
    waits: [
      { step: 'llm-request', ms: 1 },
      { step: 'guardrails', ms: 0 },
      { step: 'global request limits', ms: 3 },
    ],
    backendMs: 50,
    replyMs: 2,
    firstByteMs: 57,
    streamMs: 43,
  },
  attempts: [
    { target: 'skipped', outcome: 'skipped', skipped: 'no images' },
    { target: 'first', outcome: 'failed', failure: 'upstream_connect', startMs: 5, durationMs: 10 },
    { target: 'second', outcome: 'responded', status: 200, startMs: 15, firstByteMs: 40, durationMs: 84 },
  ],
}

describe('spansOf', () => {
  it('lists phases, steps that waited, and calls', () => {
    expect(spansOf(entry, explanation).map(({ label, startMs, endMs }) => [label, startMs, endMs])).toEqual([
      ['Policies', 0, 5],
      ['llm-request', 0, 1],
      ['global request limits', 1, 4],
      ['first', 5, 15],
      ['second', 15, 99],
      ['Policies on the response', 55, 57],
      ['Response to the client', 57, 100],
    ])
  })

  it('marks the first byte of a call', () => {
    expect(spansOf(entry, explanation).find(({ label }) => label === 'second')).toMatchObject({
      markMs: 55,
      tone: 'upstream',
      note: 'status 200',
    })
  })

  it('omits waits that are longer than the policies before the call', () => {
    const times = { totalMs: 10, policiesMs: 1, waits: [{ step: 'guardrails', ms: 5 }] }
    expect(spansOf(entry, { times }).map(({ label }) => label)).toEqual(['Policies'])
  })

  it('has the times of the row without an explanation', () => {
    expect(spansOf(entry, null)).toMatchObject([
      { startMs: 0, endMs: 60 },
      { startMs: 60, endMs: 100 },
    ])
    expect(spansOf({ ...entry, firstByteMs: null }, null)).toMatchObject([{ startMs: 0, endMs: 100 }])
  })
})
