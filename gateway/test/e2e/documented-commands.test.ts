import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { hasPrivateNetwork, runInPrivateNetwork, temporaryFolder } from '../support/private-network.ts'

// The commands of README, documentation and examples, verbatim, on the ports they name.

const root = fileURLToPath(new URL('../../..', import.meta.url))
const read = (page: string) => readFileSync(join(root, page), 'utf8')

/** The `sh` blocks of a page. */
function blocksOf(page: string): string[] {
  return [...read(page).matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)
}

/**
 * The commands in the comment at the top of an example: lines indented by three spaces, up to the first other
 * line.
 */
function commandsOf(example: string): string {
  const comment = /^(#.*\n)+/.exec(read(example))?.[0] ?? ''
  return comment
    .split('\n')
    .filter((line) => line.startsWith('#   '))
    .map((line) => line.slice(4))
    .join('\n')
}

/** The `yaml` blocks of a page. */
function yamlOf(page: string): string[] {
  return [...read(page).matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)
}

function block(page: string, start: string): string {
  const found = blocksOf(page).filter((text) => text.startsWith(start))
  if (found.length !== 1) throw new Error(`${page} has ${found.length} blocks that start with ${start}`)
  return found[0] ?? ''
}

/** `sh` blocks that this file does not run, by their first words, with the reason or the test that does. */
const elsewhere: Record<string, Record<string, string>> = {
  'docs/config-api.md': { '': 'documentation.test.ts' },
  'docs/virtual-keys.md': { '': 'documentation.test.ts' },
  'docs/identity-provider-idpa.md': { 'token=': 'needs an account at the provider' },
  'docs/identity-provider-idpb.md': { 'token=': 'needs an account at the provider' },
  'docs/mcp-conformance.md': { '': 'conformance.test.ts runs the same suite' },
  'docs/gateways-and-routes.md': { 'curl http://localhost:8080/inventory': 'traffic-matching.test.ts' },
  'docs/kubernetes-install.md': { '': 'needs a cluster' },
  'docs/kubernetes-manifests.md': { 'tollgate --manifests DIR': 'manifests.test.ts' },
  'docs/kubernetes-conditions.md': { kubectl: 'needs a cluster' },
  'docs/kubernetes-llm.md': { kubectl: 'needs a cluster' },
  'docs/kubernetes-policies.md': { kubectl: 'needs a cluster' },
  'docs/explain.md': { 'curl -s localhost:15000/api/requests': 'needs the id of a request; explain.test.ts' },
  'docs/mcp-rules.md': { 'curl -s localhost:15000/api/mcp': 'console-mcp.test.ts' },
  'docs/mcp-targets.md': { 'curl -s localhost:15000/api/mcp': 'console-mcp.test.ts' },
  'docs/operations.md': { "curl -H 'accept: application/openmetrics-text'": 'access-log.test.ts' },
  'docs/usage.md': { '': 'log-api.test.ts' },
  'docs/storage.md': {
    createuser: 'needs the command line of Postgres; store-postgres.test.ts',
    'export DATABASE_URL': 'needs a Postgres on its own port; resources-replicas.test.ts',
    '(umask': 'needs the command lines of SQLite and Postgres',
    'rm -f /var/lib': 'needs the command lines of SQLite and Postgres',
    'curl https://gateway.example.com': 'needs a host name; resources-ui.test.ts',
  },
}

const run: Record<string, string[]> = {
  'README.md': [
    'npm start',
    'curl http://127.0.0.1:4000',
    'npx @modelcontextprotocol',
    'export OPENAI_API_KEY',
    'curl "http://127.0.0.1:15000/api/usage.csv',
  ],
  'docs/config-history.md': ['api=', 'change=', 'curl -X POST'],
  'docs/configuration.md': ['tollgate\n', 'api=', 'tollgate --validate-only'],
  'docs/kubernetes-manifests.md': ['tollgate check', 'curl http://127.0.0.1:8080'],
  'docs/mcp-first-server.md': ['tollgate -f gateway.yaml'],
  'docs/rate-limits.md': ['curl -s localhost:15000'],
  'docs/storage.md': ['tollgate -f prepare.yaml'],
}

it('are all run by a test, or exempt for a reason', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync(['docs/*.md', 'examples/*.md'], { cwd: root })]
  const missing = pages.flatMap((page) =>
    blocksOf(page)
      .filter((text) => {
        const starts = [...Object.keys(elsewhere[page] ?? {}), ...(run[page] ?? [])]
        return !starts.some((start) => text.startsWith(start))
      })
      .map((text) => `${page}: ${text.split('\n', 1)}`),
  )
  expect(missing).toEqual([])
})

const clones = mkdtempSync(join(tmpdir(), 'tollgate-commands-'))
endAfter('file', () => rmSync(clones, { recursive: true, force: true }))

/**
 * A copy of the files of this repository, as a clone has them, with the packages already installed. It always
 * has the same path, so that the tests share compiled code.
 */
function freshClone(): string {
  const original = join(clones, 'original')
  const folder = join(clones, 'clone')
  if (!existsSync(original)) copyRepository(original)
  rmSync(folder, { recursive: true, force: true })
  execFileSync('cp', ['-a', original, folder])
  if (!isCompiled) execFileSync(process.execPath, ['gateway/bin/tollgate.mjs', '--version'], { cwd: folder })
  isCompiled = true
  return folder
}

/** Programs that are killed with their network do not store compiled code. */
let isCompiled = false

function copyRepository(folder: string): void {
  const list = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const path of list.trim().split('\n')) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(root, path), join(folder, path), { force: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  // Built by the global setup. `npm start` would build it in each clone.
  cpSync(join(root, 'ui/dist'), join(folder, 'ui/dist'), { recursive: true })
}

/**
 * `tollgate` is on the path, as after an installation: the bundle of the global setup, because a start from
 * the source takes six times as much CPU time.
 */
const bin = join(clones, 'bin')
mkdirSync(bin)
writeFileSync(
  join(bin, 'tollgate'),
  `#!/bin/sh\nexec node '${join(root, 'gateway/dist-test/tollgate.js')}' "$@"\n`,
  { mode: 0o755 },
)
const env = {
  ...process.env,
  PATH: [bin, join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
  INIT_CWD: undefined,
}

const ready = 'until curl -sf http://127.0.0.1:15021/healthz/ready > /dev/null; do sleep 0.1; done'
/** Separates the output of the commands from that of the gateway. */
const background = (command: string) => `${command} > gateway.log 2>&1 &\n${ready}`

describe.skipIf(!hasPrivateNetwork)('in a network of their own', () => {
  it('of the README work in a fresh clone', async () => {
    const cwd = freshClone()
    const [start = '', ask = '', keys = '', , usage = ''] = (run['README.md'] ?? []).map((text) =>
      block('README.md', text),
    )
    const stored = `until (${usage.trim()}) | grep ',you,'; do sleep 0.1; done`
    const script = [background(start.trim()), ask, keys, stored, usage].join('\n')
    const { output, status } = await runInPrivateNetwork(script, { cwd, env })
    expect(output).toContain('"content":"Hello, Tollgate"')
    const response = /\{"id":"chatcmpl.*?"fp_echo"\}/.exec(output)?.[0] ?? ''
    const documented = /^```json\n([\s\S]*?)^```/m.exec(read('README.md'))?.[1] ?? ''
    expect(JSON.parse(response)).toMatchObject(JSON.parse(documented))
    expect(output).toContain('"sum": 5')
    expect(output).toContain('Configuration resource deleted successfully')
    expect(output).toContain('api key authentication failure: invalid credentials')
    expect(output).toMatch(/^period,kind,user,requests,.*costUsd$/m)
    expect(status).toBe(0)
  })

  it('of the configuration history show and revert a change', async () => {
    const page = 'docs/config-history.md'
    const commands = (run[page] ?? []).map((text) => block(page, text))
    const { output, status } = await runInPrivateNetwork([background('npm start'), ...commands].join('\n'), {
      cwd: freshClone(),
      env,
    })
    expect(output).toContain('"operation":"update"')
    expect(output).toContain('"currentRevision":2')
    expect(output.match(/"revision":3/g)).not.toBeNull()
    expect(output).not.toContain('"error"')
    expect(status).toBe(0)
  })

  it('of the banner work as they are printed', async () => {
    const cwd = freshClone()
    const script = `${background('npm start')}
until grep -q 'One line for each request follows' gateway.log; do sleep 0.1; done
grep -E '^ +([a-z]+=\\$\\()?curl ' gateway.log | sed 's/$/; echo/' > commands.sh
bash commands.sh`
    const { output } = await runInPrivateNetwork(script, { cwd, env })
    expect(output.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(output).toContain('data: [DONE]')
    expect(output).toContain('"structuredContent":{"sum":5}')
    expect(output).toContain('Configuration resource deleted successfully')
  })

  it('with real providers of the README start the gateway', async () => {
    const cwd = freshClone()
    const file = yamlOf('README.md').find((text) => text.includes('provider: openai')) ?? ''
    writeFileSync(join(cwd, 'tollgate.yaml'), file)
    const [exported = '', validate = '', start = ''] = block('README.md', 'export OPENAI_API_KEY').split('\n')
    const keys = exported.replaceAll('=...', '=sk-test').replace('BUILD_KEY=sk-test', 'BUILD_KEY=sk-other')
    const { output, status } = await runInPrivateNetwork(
      `${keys}\n${validate}\n${background(start)}\ncurl -s -o /dev/null -w '%{http_code}' 127.0.0.1:4000/v1/models`,
      { cwd, env },
    )
    expect(output).toContain('Configuration is valid!\n401')
    expect(status).toBe(0)
  })

  it('without a file make one and add to it', async () => {
    const cwd = temporaryFolder()
    const { output } = await runInPrivateNetwork(
      `${background(block('docs/configuration.md', 'tollgate\n').trim())}
${block('docs/configuration.md', 'api=')}
cp ~/.config/tollgate/config.yaml tollgate.yaml
${block('docs/configuration.md', 'tollgate --validate-only')}
${block('docs/rate-limits.md', 'curl -s localhost:15000')}`,
      { cwd, env: { ...env, HOME: cwd, XDG_CONFIG_HOME: '' } },
    )
    expect(output).toContain('"id":"echo"')
    expect(output).toContain('Configuration is valid!')
    expect(output).toContain('{"local":[],"global":[],"keys":{')
  })

  it('of manifests check and run the example', async () => {
    const page = 'docs/kubernetes-manifests.md'
    const [check = '', start = ''] = block(page, 'tollgate check').split('\n')
    const script = `${check}\n${background(start)}\n${block(page, 'curl http://127.0.0.1:8080')}`
    const { output } = await runInPrivateNetwork(script, { cwd: freshClone(), env })
    expect(output).toContain('not accepted: 0, errors: 0')
    expect(output).toContain('"content":"Hello, <EMAIL_ADDRESS>"')
  })

  it('of the first MCP server list its tools', async () => {
    const cwd = freshClone()
    writeFileSync(join(cwd, 'gateway.yaml'), yamlOf('docs/mcp-first-server.md')[0] ?? '')
    const [start = '', list = ''] = block('docs/mcp-first-server.md', 'tollgate').split('\n')
    const { output } = await runInPrivateNetwork(`${background(start)}\n${list}`, { cwd, env })
    expect(output).toContain('"name": "echo"')
  })

  it('of storage prepare a database beside a running gateway', async () => {
    const cwd = temporaryFolder()
    writeFileSync(
      join(cwd, 'prepare.yaml'),
      `config:
  adminAddr: 127.0.0.1:15100
  storage: { mode: hybrid }
  database: { url: sqlite://prepared.db }
llm: { models: [], policies: { apiKey: { keys: [] } } }`,
    )
    const [start = '', ...rest] = block('docs/storage.md', 'tollgate -f prepare.yaml').split('\n')
    const { output } = await runInPrivateNetwork([`${start} ${ready}`, ...rest].join('\n'), { cwd, env })
    expect(output).toContain('"name":"ada"')
  })

  it('of the guardrail example reject and mask', async () => {
    const cwd = freshClone()
    const [server = '', start = ''] = commandsOf('examples/guardrail-webhook.yaml')
      .split('\n')
      .map((line) => line.replace(/ {2,}.*/, ''))
    const ask = (text: string) =>
      `curl -s -w '%{http_code}\\n' 127.0.0.1:4000/v1/chat/completions -d '{"model":"echo","messages":[{"role":"user","content":"${text}"}]}' -H 'content-type: application/json'`
    const script = [`${server} > server.log 2>&1 &`, background(start), ask('block'), ask('mask me')].join(
      '\n',
    )
    const { output } = await runInPrivateNetwork(script, { cwd, env })
    expect(output).toContain('request blocked403')
    expect(output).toContain('"content":"**** me"')
  })

  it.each(['examples/mcp-first-server.yaml', 'examples/quickstart.yaml', 'examples/hybrid-sqlite.yaml'])(
    'in the comment of %s work',
    async (example) => {
      const cwd = freshClone()
      const commands = commandsOf(example)
      const first = commands.startsWith('npx tollgate') ? commands.split('\n', 1)[0] : undefined
      const isQuickstart = example.includes('quickstart')
      const start = first ?? (isQuickstart ? 'npm start' : `tollgate -f ${example}`)
      const rest = first === undefined ? commands : commands.slice(first.length + 1)
      // The quickstart makes its own key.
      const names = isQuickstart
        ? []
        : [...read(example).matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name)
      const { output, status } = await runInPrivateNetwork(`set -e\n${background(start)}\n${rest}`, {
        cwd,
        env: { ...Object.fromEntries(names.map((name) => [name, 'a'.repeat(64)])), ...env },
      })
      expect(output).not.toMatch(/"error"|invalid/)
      expect(output).toMatch(/"content":"Hello"|"name": ?"(echo|add|alice|me)"/)
      expect(status).toBe(0)
    },
  )
})
