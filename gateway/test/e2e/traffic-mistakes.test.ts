import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { runTollgate } from '../support/gateway.ts'

/**
 * Validates a text; a line that ends in `# <- expected` requires a message on it that contains these words.
 */
async function messagesOf(text: string): Promise<{ expected: string[]; messages: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-mistakes-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'c.yaml')
  writeFileSync(file, text)
  const { code, stderr } = await runTollgate(['--validate-only', '-f', file])
  expect(code).toBe(1)
  const messages = stderr.split('\n').filter((line) => line.includes('c.yaml:'))
  const expected = text.split('\n').flatMap((line, index) => {
    const [, words] = / # <- (.*)$/.exec(line) ?? []
    return words === undefined ? [] : [`c.yaml:${index + 1}: ${words}`]
  })
  return { expected, messages: messages.map((line) => line.slice(line.indexOf('c.yaml:'))) }
}

/** Each expectation has a message on its line with all its words, and there are no further messages. */
async function expectMistakes(text: string): Promise<void> {
  const { expected, messages } = await messagesOf(text)
  const unmatched = [...messages]
  for (const expectation of expected) {
    const [, place = '', words = ''] = /^(c\.yaml:\d+:) (.*)$/.exec(expectation) ?? []
    const index = unmatched.findIndex(
      (message) =>
        new RegExp(`^${place}\\d+: `).test(message) &&
        words.split(' | ').every((word) => message.toLowerCase().includes(word.toLowerCase())),
    )
    expect({ expectation, messages: index < 0 ? messages : 'found' }).toEqual({
      expectation,
      messages: 'found',
    })
    unmatched.splice(index, 1)
  }
  expect(unmatched).toEqual([])
}

describe('mistakes in traffic sections', () => {
  it('of shape are named with line, column and path, all in one run', () =>
    expectMistakes(`
gateways:
  default: {port: 8080}
  other:
    prot: 8081 # <- gateways.other.prot | port
    port: 8082
  second:
    port: 70000 # <- gateways.second.port
    protocol: HTTP3 # <- gateways.second.protocol | HTTPS
routes:
  - name: a
    matches:
      - path: {exact: /a, regex: /b} # <- routes[0].matches[0].path | exact
        methods: GET # <- routes[0].matches[0].methods | method
    policies:
      timeout: {requestTimeout: 10} # <- routes[0].policies.timeout.requestTimeout
      retry: {attempts: 100} # <- routes[0].policies.retry.attempts | 20
      directResponse: {status: 99} # <- routes[0].policies.directResponse.status | 200
      urlRewrites: {} # <- routes[0].policies.urlRewrites | urlRewrite
    backends:
      - {host: "localhost:1", backend: /b} # <- routes[0].backends[0] | host
      - {host: "localhost"} # <- routes[0].backends[1].host
      - {host: "localhost:80", weight: -1} # <- routes[0].backends[2].weight
      - {service: {name: a}} # <- routes[0].backends[3].service | not supported: use host
tcpRoutes:
  - name: t # <- tcpRoutes[0]: | HTTP
    matches: [] # <- tcpRoutes[0].matches
    backends: [{host: "localhost:1"}]
backends:
  - host: "localhost:1" # <- backends[0] | name
`))

  it('of meaning are named with line, column and path, all in one run', () =>
    expectMistakes(`
gateways:
  one: {port: 8080}
  two: {port: 8080} # <- gateways.two | 8080
  listens:
    port: 8443
    protocol: HTTPS # <- gateways.listens.protocol | listeners
    listeners:
      - name: a
        hostname: a.test
        tls: { # <- gateways.listens.listeners[0].tls | key
          cert: /none.crt, # <- gateways.listens.listeners[0].tls.cert | no such file
        }
      - name: a # <- gateways.listens.listeners[1].name | "a"
        hostname: b.test
        tls:
          cert: /x.crt # <- gateways.listens.listeners[1].tls.cert | no such file
          key: /x.key # <- gateways.listens.listeners[1].tls.key | no such file
  tcp: {port: 8444, protocol: TCP}
routes:
  - name: same
    gateways: [one, three] # <- routes[0].gateways[1] | three | one
    hostnames: ["*.*.test"] # <- routes[0].hostnames[0]
    matches:
      - path: {pathPrefix: no-slash} # <- routes[0].matches[0].path
      - path: {regex: "(unclosed"} # <- routes[0].matches[1].path
      - headers: [{name: "bad name", value: {exact: x}}] # <- routes[0].matches[2].headers[0].name
    policies:
      authorization: {rules: ["request.path ="]} # <- routes[0].policies.authorization.rules[0]
      requestHeaderModifier:
        set:
          host: other # <- routes[0].policies.requestHeaderModifier.set.host | urlRewrite
          "x-a": "line\\nbreak" # <- routes[0].policies.requestHeaderModifier.set.x-a | line
      requestMirror: {backend: {backend: /nobody}} # <- routes[0].policies.requestMirror | nobody
      ai: {routes: {"*": completions}} # <- routes[0].policies.ai | LLM
    backends:
      - backend: /nobody # <- routes[0].backends[0].backend | nobody
  - name: same # <- routes[1].name | same
    gateways: tcp # <- routes[1].gateways | HTTP
  - name: lost # <- routes[2] | default
  - name: mixed
    gateways: one
    backends:
      - {host: "localhost:1"}
      - {ai: {provider: {echo: {}}}} # <- routes[3].backends
tcpRoutes:
  - gateways: one # <- tcpRoutes[0].gateways | HTTP
    backends: [{host: "localhost:1"}]
  - gateways: tcp
    hostnames: [a.test] # <- tcpRoutes[1].hostnames | TLS
    backends: [{host: "localhost:1"}]
`))

  it('in binds are named where they are written', () =>
    expectMistakes(`
binds:
  - port: 8080
    listeners:
      - hostname: a.test
        routes:
          - policies:
              jwtAuth: {issuer: "https://id.test", audiences: [a], jwks: "nothing"} # <- binds[0].listeners[0].routes[0].policies.jwtAuth.jwks
            backends: [{backend: /nobody}] # <- binds[0].listeners[0].routes[0].backends[0].backend | nobody
          - policies:
              jwtAuth:
                issuer: https://id.test
                audiences: [a]
                jwks: {file: /none.json} # <- binds[0].listeners[0].routes[1].policies.jwtAuth.jwks.file | no such file
            backends: [{host: "localhost:1"}]
      - hostname: a.test # <- binds[0].listeners[1] | a.test
        tcpRoutes:
          - backends: [{host: "localhost:1"}] # <- binds[0].listeners[1].tcpRoutes[0]: | HTTP
`))
})
