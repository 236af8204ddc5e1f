import { describe, expect, it } from 'vitest'
import { checkTermination, terminationOf } from './termination.ts'

describe('the end of the process', () => {
  it.each([
    [{}, { acceptMs: 0, drainMs: 25_000 }],
    [{ connectionTerminationDeadline: '5s' }, { acceptMs: 0, drainMs: 5_000 }],
    [{ connectionMinTerminationDeadline: '10s' }, { acceptMs: 10_000, drainMs: 15_000 }],
    [
      { connectionMinTerminationDeadline: '5s', connectionTerminationDeadline: '5s' },
      { acceptMs: 5_000, drainMs: 0 },
    ],
    [{ connectionTerminationDeadline: '40d' }, { acceptMs: 0, drainMs: 2_147_483_647 }],
  ])('has the limits of %j', (settings, expected) => {
    expect(terminationOf(settings, {})).toEqual(expected)
  })

  it('has the defaults of its kind of process, the longer of two delays', () => {
    const defaults = { acceptMs: 3_000, drainMs: 60_000 }
    expect(terminationOf({}, defaults)).toEqual(defaults)
    expect(terminationOf({ connectionMinTerminationDeadline: '1s' }, defaults)).toEqual({
      acceptMs: 3_000,
      drainMs: 59_000,
    })
  })

  it.each([
    [{ connectionMinTerminationDeadline: '26s' }, ['must be at most connectionTerminationDeadline (25s)']],
    [
      { connectionMinTerminationDeadline: '2s', connectionTerminationDeadline: '1s' },
      ['must be at most connectionTerminationDeadline (1s)'],
    ],
    [{ connectionMinTerminationDeadline: '25s' }, []],
  ])('reports a deadline before the end of accepting in %j', (settings, expected) => {
    const messages: string[] = []
    checkTermination(settings, (_, message) => messages.push(message))
    expect(messages).toEqual(expected)
  })
})
