import { describe, expect, it } from 'vitest'
import { check } from '../../schema/check.ts'
import { object } from '../../schema/dsl.ts'
import { backendReferences, checkMcp, checkSessionKey, checkSessionTtl } from './check-config.ts'
import { type McpConfig, mcpFields } from './config.ts'
import { readAddress } from './targets/address.ts'

const mcp = { host: 'http://up.test/mcp' }

function issues(config: McpConfig): [string, string][] {
  const found: [string, string][] = []
  checkMcp(config, (path, message) => found.push([path.join('.'), message]))
  return found
}

describe('the mcp section', () => {
  it('takes targets of every kind', () => {
    const config = {
      targets: [
        { name: 'a', stdio: { cmd: 'npx', args: ['x'] } },
        { name: 'b.c-1', mcp },
        { name: 'c', sse: { host: 'up.test', port: 8080, path: '/sse' } },
      ],
    }
    const checked = check(object(mcpFields, { doc: '' }), config)
    expect(checked.kind).toBe('valid')
    expect(issues(config)).toEqual([])
  })

  it.each(['a_b', 'a+b', 'A', '', '-a', 'a-', 'a b', 'ä', 'a'.repeat(300)])(
    'refuses the target name %j',
    (name) => {
      expect(issues({ targets: [{ name, mcp }] })).toMatchObject([
        ['targets.0.name', expect.stringContaining('"_" and "+"')],
      ])
    },
  )

  it('refuses a name twice', () => {
    expect(
      issues({
        targets: [
          { name: 'a', mcp },
          { name: 'a', mcp },
        ],
      }),
    ).toEqual([['targets.1.name', 'must be unique: another target is named "a"']])
  })

  it('reports problems of a target with their path', () => {
    expect(issues({ targets: [{ name: 'a', mcp: { host: 'ftp://x' } }] })).toMatchObject([
      ['targets.0.mcp.host', expect.any(String)],
    ])
    expect(issues({ targets: [{ name: 'a', stdio: { cmd: 'a\0b' } }] })).toMatchObject([
      ['targets.0.stdio.cmd', expect.any(String)],
    ])
  })
})

it('requires the issuer of a client secret', () => {
  const oauth = { publicUrl: 'https://a.test/mcp', clientId: 'c', clientSecret: 's' }
  const found = (issuer?: string) =>
    issues({ targets: [{ name: 'a', mcp, policies: { oauth: { ...oauth, ...(issuer && { issuer }) } } }] })
  expect(found()).toEqual([
    ['targets.0.policies.oauth.clientSecret', expect.stringContaining('requires issuer')],
  ])
  expect(found('https://auth.test')).toEqual([])
})

describe('the backend of a target', () => {
  const section = object(mcpFields, { doc: '' })

  it.each([{ host: 'http://up.test' }, { backend: '/up', path: '/mcp' }])('may be %j', (address) => {
    expect(check(section, { targets: [{ name: 'a', mcp: address }] }).kind).toBe('valid')
  })

  it.each([{}, { path: '/mcp' }, { host: 'http://up.test', backend: '/up' }])('may not be %j', (address) => {
    expect(check(section, { targets: [{ name: 'a', sse: address }] }).kind).toBe('mistakes')
  })

  it('is a name with a slash, without a port', () => {
    expect(issues({ targets: [{ name: 'a', mcp: { backend: 'up' } }] })).toMatchObject([
      ['targets.0.mcp.backend', expect.stringContaining('must have the form')],
    ])
    expect(issues({ targets: [{ name: 'a', sse: { backend: '/up', port: 1 } }] })).toMatchObject([
      ['targets.0.sse.backend', expect.stringContaining('port')],
    ])
  })

  it('is reported with its path', () => {
    const targets = [
      { name: 'a', mcp },
      { name: 'b', openapi: { backend: '/api', schema: 'x' } },
    ]
    expect(backendReferences({ targets })).toEqual([
      { reference: '/api', path: ['targets', 1, 'openapi', 'backend'] },
    ])
  })

  it('has policies only where it is a server of its own', () => {
    const policies = { backendAuth: { key: 'k' } }
    expect(issues({ targets: [{ name: 'a', mcp, policies }] })).toEqual([])
    const found = issues({
      targets: [
        { name: 'a', stdio: { cmd: 'x' }, policies },
        { name: 'b', mcp: { backend: '/up' }, policies },
        { name: 'c', mcp, policies: { backendAuth: { key: 'a b' } } },
      ],
    })
    expect(found.map(([path]) => path)).toEqual([
      'targets.0.policies',
      'targets.1.policies',
      'targets.2.policies.backendAuth.key',
    ])
    expect(JSON.stringify(found)).not.toContain('a b')
  })
})

it('has a separate port or gateways', () => {
  expect(issues({ targets: [], port: 1, gateways: 'default' })).toMatchObject([
    ['gateways', expect.any(String)],
  ])
  expect(issues({ targets: [], gateways: ['default', 'b/c'] })).toEqual([])
})

describe('settings of sessions', () => {
  it('need a key of 32 bytes, which no message repeats', () => {
    const found: string[] = []
    checkSessionKey('secret', (_, message) => found.push(message))
    expect(found).toEqual(['must be 64 hexadecimal digits (32 bytes)'])
    checkSessionKey('0'.repeat(64), (_, message) => found.push(message))
    checkSessionTtl('0s', (_, message) => found.push(message))
    checkSessionTtl('1m', (_, message) => found.push(message))
    expect(found).toHaveLength(2)
  })
})

describe('the address of a target', () => {
  it.each([
    [{ host: 'http://up.test:81/a/b?x=1' }, 'http://up.test:81', '/a/b?x=1'],
    [{ host: 'https://up.test' }, 'https://up.test', '/mcp'],
    [{ host: 'https://up.test/' }, 'https://up.test', '/mcp'],
    [{ host: 'https://up.test/?key=1' }, 'https://up.test', '/mcp?key=1'],
    [{ host: 'up.test:81' }, 'http://up.test:81', '/mcp'],
    [{ host: '[::1]:81' }, 'http://[::1]:81', '/mcp'],
    [{ host: 'up.test', port: 81, path: '/x' }, 'http://up.test:81', '/x'],
    [{ host: '::1', port: 81, path: '' }, 'http://[::1]:81', '/mcp'],
    [{ host: 'http://up.test', port: 81, path: '/x' }, 'http://up.test:81', '/x'],
  ])('%j leads to %s%s', (config, origin, path) => {
    expect(readAddress(config, '/mcp')).toEqual({ kind: 'address', address: { origin, path } })
  })

  it.each([
    { host: 'up.test' },
    { host: 'ftp://up.test' },
    { host: 'http://' },
    { host: 'http://user:pass@up.test' },
    { host: 'http://up.test/#x' },
    { host: 'up.test:81', port: 82 },
    { host: 'up test', port: 81 },
    { host: 'up.test', port: 81, path: 'x' },
    { host: 'up.test', port: 81, path: '/a b' },
    { host: 'up.test', port: 81, path: '/a\r\nb' },
    { host: 'up.test', port: 81, path: '/a#b' },
  ])('reports %j', (config) => {
    expect(readAddress(config, '/mcp')).toMatchObject({ kind: 'invalid' })
  })
})
