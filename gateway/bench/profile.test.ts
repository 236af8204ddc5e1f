import { expect, it } from 'vitest'
import { selfTimes } from './profile.ts'

const frame = (functionName: string, url = '', lineNumber = 0) => ({ functionName, url, lineNumber })

const profile = {
  startTime: 1000,
  nodes: [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('run', 'file:///somewhere/gateway/src/pipeline/run.ts', 70) },
    { id: 3, callFrame: frame('', 'file:///x/node_modules/undici/lib/core/request.js', 9) },
  ],
  samples: [2, 1, 2, 3, 2],
  timeDeltas: [5000, 100, 300, 600, 300],
}

it('adds up self time by function from the given moment on, without idle time', () => {
  expect(selfTimes(profile, 6001)).toEqual([
    { place: 'run gateway/src/pipeline/run.ts:71', selfMs: 0.6, share: 0.5 },
    { place: '(anonymous) node_modules/undici/lib/core/request.js:10', selfMs: 0.6, share: 0.5 },
  ])
})

it('counts everything from the start on', () => {
  expect(selfTimes(profile, 0)[0]?.selfMs).toBeCloseTo(5.6)
})
