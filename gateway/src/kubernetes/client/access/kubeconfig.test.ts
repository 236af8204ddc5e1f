import { describe, expect, it } from 'vitest'
import { inClusterAccess, isInCluster } from './in-cluster.ts'
import { readKubeconfig } from './kubeconfig.ts'
import { createTokenFile } from './token-file.ts'

const clock = { now: () => 0, monotonic: () => 0 }

type Part = Record<string, unknown>

function config(cluster: Part = {}, user: Part = { token: 'secret-token' }, rest: Part = {}): string {
  return JSON.stringify({
    'current-context': 'one',
    contexts: [
      { name: 'other', context: { cluster: 'none', user: 'none' } },
      { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'team' } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://api.example:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    ...rest,
  })
}

function read(text: string, files: Record<string, string> = {}) {
  const readText = (path: string) => {
    const found = path === '/folder/config' ? text : files[path]
    if (found === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`)
    return found
  }
  return readKubeconfig('/folder/config', readText, clock)
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('readKubeconfig', () => {
  it('reads the current context with a token and an authority', () => {
    const access = read(config({ 'certificate-authority-data': base64('CA'), 'tls-server-name': 'kube' }))
    expect(access.server.href).toBe('https://api.example:6443/')
    expect(access).toMatchObject({ authority: 'CA', serverName: 'kube', namespace: 'team' })
    expect(access.token?.read()).toBe('secret-token')
  })

  it('reads YAML', () => {
    const text = `
current-context: one
contexts: [{ name: one, context: { cluster: c } }]
clusters: [{ name: c, cluster: { server: "http://127.0.0.1:8001" } }]
`
    expect(read(text).token).toBeUndefined()
  })

  it('reads files relative to the kubeconfig', () => {
    const user = { 'client-certificate': 'tls.crt', 'client-key': '/keys/tls.key' }
    const files = { '/folder/tls.crt': 'CERT', '/keys/tls.key': 'KEY', '/folder/ca.crt': 'CA' }
    const access = read(config({ 'certificate-authority': 'ca.crt' }, user), files)
    expect(access).toMatchObject({ authority: 'CA', certificate: { cert: 'CERT', key: 'KEY' } })
  })

  it.each<[string, string]>([
    ['insecure-skip-tls-verify is not supported', config({ 'insecure-skip-tls-verify': true })],
    ['proxy-url is not supported', config({ 'proxy-url': 'http://proxy' })],
    ['user.exec: a credential plug-in is not run', config({}, { exec: { command: 'aws' } })],
    ['user.auth-provider: a credential plug-in is not run', config({}, { 'auth-provider': { name: 'x' } })],
    ['user.username: basic authentication', config({}, { username: 'a', password: 'hunter2' })],
    ['user.as: impersonation is not supported', config({}, { as: 'admin' })],
    ['cluster.server must be an https URL', config({ server: 'ftp://x' })],
    ['cluster.server must be an https URL unless', config({ server: 'http://api.example' })],
    ['credentials are not sent over http', config({ server: 'http://127.0.0.1:8001' })],
    ['must be set together', config({}, { 'client-certificate-data': base64('C') })],
    ['users must contain "u"', config({}, {}, { users: [] })],
    ['contexts must contain "two"', config({}, {}, { 'current-context': 'two' })],
    ['current-context is not set', config({}, {}, { 'current-context': '' })],
    ['certificate-authority is not readable', config({ 'certificate-authority': 'absent.crt' })],
    ['is not a readable kubeconfig', '{'],
    ['must be a YAML map', '[]'],
  ])('reports: %s', (message, text) => {
    expect(() => read(text)).toThrow(message)
    expect(() => read(text)).not.toThrow(/hunter2|secret-token/)
  })
})

describe('inClusterAccess', () => {
  const folder = '/var/run/secrets/kubernetes.io/serviceaccount'
  const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '6443' }
  const files: Record<string, string> = {
    [`${folder}/token`]: 'abc\n',
    [`${folder}/ca.crt`]: 'CA',
    [`${folder}/namespace`]: 'system',
  }

  it('reads the address, the account and its namespace', () => {
    const access = inClusterAccess(env, (path) => files[path] ?? '', clock)
    expect(access.server.href).toBe('https://10.0.0.1:6443/')
    expect(access).toMatchObject({ authority: 'CA', namespace: 'system' })
    expect(access.token?.read()).toBe('abc')
    expect([isInCluster(env), isInCluster({})]).toEqual([true, false])
  })

  it('accepts an IPv6 address', () => {
    const access = inClusterAccess({ KUBERNETES_SERVICE_HOST: 'fd00::1' }, (path) => files[path] ?? '', clock)
    expect(access.server.href).toBe('https://[fd00::1]/')
  })

  it('names the fix if the account is not mounted', () => {
    const absent = () => {
      throw new Error('ENOENT')
    }
    expect(() => inClusterAccess(env, absent, clock)).toThrow('set automountServiceAccountToken')
  })
})

describe('createTokenFile', () => {
  it('reads the file again after a minute or a refusal, and survives a failed read', () => {
    let now = 0
    let content: string | undefined = 'one'
    const token = createTokenFile(
      'token',
      () => {
        if (content === undefined) throw new Error('ENOENT')
        return content
      },
      { monotonic: () => now },
    )
    expect(token.read()).toBe('one')
    content = 'two'
    now = 59_000
    expect(token.read()).toBe('one')
    now = 60_000
    expect(token.read()).toBe('two')
    content = 'three'
    token.expire()
    expect(token.read()).toBe('two')
    now = 61_000
    expect(token.read()).toBe('three')
    content = undefined
    now = 200_000
    expect(token.read()).toBe('three')
  })
})
