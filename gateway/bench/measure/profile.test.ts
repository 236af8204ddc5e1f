import { expect, it } from 'vitest'
import { compareProfiles } from './profile.ts'

const frame = (functionName: string, url = '', lineNumber = 0) => ({ functionName, url, lineNumber })

const profile = {
  startTime: 1000,
  nodes: [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('run', 'file:///somewhere/gateway/src/pipeline/pipeline.ts', 70) },
    { id: 3, callFrame: frame('', 'file:///x/node_modules/undici/lib/core/request.js', 9) },
    { id: 4, callFrame: frame('write', 'file:///x/node_modules/undici/lib/core/socket.js', 4) },
  ],
  samples: [2, 1, 2, 3, 2, 4],
  timeDeltas: [5000, 100, 300, 600, 300, 100],
}

it('counts self time for each request from the given moment on, without idle time', () => {
  const tollgate = { profile, sinceMicros: 6001, requests: 10 }
  const relay = { profile, sinceMicros: 7001, requests: 10 }
  expect(compareProfiles(tollgate, relay).functions).toEqual([
    { place: '(anonymous) node_modules/undici/lib/core/request.js:10', tollgate: 60, relay: 0 },
    { place: 'run gateway/src/pipeline/pipeline.ts:71', tollgate: 60, relay: 30 },
    { place: 'write node_modules/undici/lib/core/socket.js:5', tollgate: 10, relay: 10 },
  ])
})

it('adds the functions of a package up', () => {
  const both = { profile, sinceMicros: 0, requests: 1 }
  expect(compareProfiles(both, both).parts).toContainEqual({
    place: 'package undici',
    tollgate: 700,
    relay: 700,
  })
})
