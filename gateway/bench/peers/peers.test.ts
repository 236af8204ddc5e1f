import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { createIssuer } from '../mcp/tokens.ts'
import { absentIn, definitionOf, definitions } from './peers.ts'
import { fillTemplate } from './template.ts'

const ports = { port: 1, adminPort: 2, statsPort: 3, readinessPort: 4, upstreamPort: 5 }
const values = {
  ...ports,
  folder: '/run/x',
  config: '/run/x/config',
  benchKey: 'k',
  issuer: 'https://id.example.com',
  audience: 'https://gateway.example.com/mcp',
  keySet: createIssuer().keySet,
  routes: [{ name: 'r', backends: [{ host: '127.0.0.1:5' }] }],
}

const files = definitions.flatMap(({ name, stages }) =>
  Object.entries(stages).flatMap(([stage, { files, values: more }]) =>
    Object.values(files).map((file) => ({ name, stage, file, more })),
  ),
)

it.each(files)('$name has a valid configuration for $stage in $file', ({ name, file, more }) => {
  const text = readFileSync(join(import.meta.dirname, name, file), 'utf8')
  const config = parse(fillTemplate(text, { ...values, ...more?.() }, file), { maxAliasCount: 0 })
  expect(config).toEqual(expect.any(Object))
  expect(JSON.stringify(config)).toContain('127.0.0.1:5')
})

it.each(definitions)('every configuration file of $name is used', ({ name }) => {
  const present = readdirSync(join(import.meta.dirname, name)).filter((file) => !file.endsWith('.ts'))
  const used = files.filter((file) => file.name === name).map(({ file }) => file)
  expect([...new Set(used)].toSorted()).toEqual(present.toSorted())
})

it('a peer is found by its name in any case', () => {
  expect(definitionOf({ name: 'AgentGateway', command: ['x'] }).name).toBe('agentgateway')
})

it('a further gateway serves every workload if its command has placeholders', () => {
  const relay = { name: 'relay', command: ['relay', '{{port}}', '{{upstreamPort}}'] }
  expect(absentIn(relay, 'http')).toEqual([])
  expect(() => definitionOf({ name: 'relay', command: ['relay'] })).toThrow(
    'there is no configuration for peer relay: name one of agentgateway, bifrost, litellm, portkey, or use {{port}}',
  )
})
