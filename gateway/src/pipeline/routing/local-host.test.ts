import { describe, expect, it } from 'vitest'
import { isLocalHost, isLoopbackName } from './local-host.ts'

describe('a local host', () => {
  it.each([
    'localhost:4000',
    'LOCALHOST',
    'localhost.',
    'app.localhost',
    '127.0.0.1:3000',
    '[::1]:3000',
    '[fd00::1]',
    '192.168.1.20:4000',
    'tollgate:4000',
    'printer.local',
    'gateway.team.svc:80',
    'gateway.team.svc.cluster.local',
    'ai.corp.internal',
    'router.home.arpa',
  ])('may be %s', (host) => {
    expect(isLocalHost(host)).toBe(true)
  })

  it.each([
    '',
    'evil.example',
    'evil.example.:4000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '1.2.3.4.5',
    'evil.example:127',
    'internal.evil.example',
    'evillocal.example',
    '.',
  ])('is not %j', (host) => {
    expect(isLocalHost(host)).toBe(false)
  })
})

describe('a loopback name', () => {
  it.each(['localhost', 'localhost:3000', '127.8.8.8', '[::1]:3000', 'LOCALHOST:3000'])('is %s', (host) => {
    expect(isLoopbackName(host)).toBe(true)
  })

  it.each(['10.0.0.1', '', '0.0.0.0', '[::2]', 'tollgate', 'localhost.evil.test'])('is not %j', (host) => {
    expect(isLoopbackName(host)).toBe(false)
  })
})
