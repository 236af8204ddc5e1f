import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { runTollgate } from '../support/gateway.ts'
import { printedLines } from '../support/printed-lines.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-config-'))
  file = join(folder, 'tollgate.yaml')
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
})

const good = `# yaml-language-server: comments with \${UNSET_IN_COMMENT} are never expanded
config:
  bindAddress: 127.0.0.1
llm:
  models:
    - name: gpt-*
      provider: openai
      params:
        apiKey: \${OPENAI_API_KEY}
    - name: echo
      provider: echo
  policies:
    apiKey:
      keys:
        - key: sk-config-canary-1
          metadata: {group: platform}
    authorization:
      rules:
        - apiKey.group == "platform"
    localRateLimit:
      - {requests: 10, unit: Minutes}
      - {tokens: 1000, unit: Hours, burst: 5, key: apiKey.id}
`

const env = { OPENAI_API_KEY: 'sk-env-canary-2' }

function validate(text: string | Buffer, environment: Record<string, string> = env) {
  writeFileSync(file, text)
  return runTollgate(['--validate-only', '-f', file], { env: environment })
}

type Mistake = { title: string; text: string; expected: RegExp[]; line?: number }

const mistakes: Mistake[] = [
  {
    title: 'an unknown key, with the nearest known one',
    text: good.replace('models:', 'modles:'),
    expected: [/modles/, /models/],
    line: 5,
  },
  {
    title: 'an unknown key at the top',
    text: good.replace('\nllm:', '\nllms:'),
    expected: [/llms/, /did you mean.*llm/i],
    line: 4,
  },
  {
    title: 'a key of the reference product that is not supported',
    text: good.replace('\nllm:', '\nservices: []\nllm:'),
    expected: [/services/, /not supported/],
    line: 4,
  },
  {
    title: 'a wrong type',
    text: good.replace('requests: 10', 'requests: many'),
    expected: [/requests/, /number|integer/],
    line: 21,
  },
  {
    title: 'two of exactly-one',
    text: good.replace('requests: 10', 'requests: 10, tokens: 5'),
    expected: [/exactly one|both/i, /requests/, /tokens/],
    line: 21,
  },
  {
    title: 'none of exactly-one',
    text: good.replace('requests: 10, ', ''),
    expected: [/requests/, /tokens/],
    line: 21,
  },
  {
    title: 'both key and keyHash',
    text: good.replace(
      '- key: sk-config-canary-1',
      `- key: sk-config-canary-1\n          keyHash: sha256:${'0'.repeat(64)}`,
    ),
    expected: [/data did not match any variant of untagged enum LocalAPIKey/],
    line: 15,
  },
  {
    title: 'an empty key',
    text: good.replace('sk-config-canary-1', '""'),
    expected: [/keys\[0\]/],
    line: 15,
  },
  {
    title: 'a key twice',
    text: good.replace('    authorization:', '        - key: sk-config-canary-1\n    authorization:'),
    expected: [/keys\[1\]|duplicate|twice|same/i],
    line: 17,
  },
  {
    title: 'a YAML key twice',
    text: good.replace('    authorization:', '    apiKey: {keys: []}\n    authorization:'),
    expected: [/apiKey/],
    line: 17,
  },
  {
    title: 'a duplicate name of virtual models',
    text: good.replace(
      '  policies:',
      '  virtualModels:\n' +
        '    - {name: fast, routing: {weighted: {targets: [{model: echo}]}}}\n' +
        '    - {name: fast, routing: {weighted: {targets: [{model: echo}]}}}\n  policies:',
    ),
    expected: [/fast/],
    line: 14,
  },
  {
    title: 'CEL with a syntax error',
    text: good.replace('apiKey.group == "platform"', 'apiKey.group === "platform"'),
    expected: [/authorization\.rules\[0\]/],
    line: 19,
  },
  {
    title: 'CEL with an unknown variable',
    text: good.replace('apiKey.group == "platform"', 'apikey.group == "platform"'),
    expected: [/apikey/, /apiKey/],
    line: 19,
  },
  {
    title: 'CEL with a variable that cannot exist there',
    text: good.replace('apiKey.group == "platform"', 'mcp.tool.name == "x"'),
    expected: [/mcp/],
    line: 19,
  },
  {
    title: 'an unknown provider',
    text: good.replace('provider: openai', 'provider: opnai'),
    expected: [/opnai/, /openai/],
    line: 7,
  },
  {
    title: 'a model pattern with a star in the middle',
    text: good.replace('name: gpt-*', 'name: gpt-*-mini'),
    expected: [/gpt-\*-mini/],
    line: 6,
  },
  {
    title: 'an admin address that is not loopback',
    text: good.replace('bindAddress: 127.0.0.1', 'adminAddr: 0.0.0.0:15000'),
    expected: [/adminAddr/, /loopback/, /ui\.gateways/],
    line: 3,
  },
  {
    title: 'an unset variable',
    text: good.replace('OPENAI_API_KEY', 'NOT_SET_ANYWHERE'),
    expected: [/environment variable not found: NOT_SET_ANYWHERE/],
    line: 9,
  },
  {
    title: 'a YAML syntax error',
    text: good.replace('rules:', 'rules: ['),
    expected: [/.+/],
  },
  {
    title: 'a tab as indentation',
    text: good.replace('      rules:', '\trules:'),
    expected: [/tab/i],
    line: 18,
  },
  {
    title: 'a list at the top',
    text: '- a\n- b\n',
    expected: [/object|map|mapping/i],
    line: 1,
  },
  {
    title: 'two documents',
    text: `${good}---\nllm: {models: []}\n`,
    expected: [/document/],
  },
  {
    title: 'an alias bomb',
    text: `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghijk']
      .map((name, index) => {
        const previous = 'abcdefghijk'[index]
        return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${previous}`).join(',')}]`
      })
      .join('\n')}\n`,
    expected: [/alias|unknown key/i],
  },
]

const accepted: readonly (readonly [title: string, text: string])[] = [
  ['an empty file', ''],
  ['comments only', '# nothing yet\n'],
  ['CRLF line ends and a byte order mark', `\uFEFF${good.replaceAll('\n', '\r\n')}`],
]

describe('a validation', () => {
  let printed: Record<string, string[]>
  const all = mkdtempSync(join(tmpdir(), 'tollgate-config-'))
  const fileOf = (title: string) => join(all, title.replaceAll(/\W/g, '-'), 'tollgate.yaml')

  beforeAll(async () => {
    endAfter('file', () => rmSync(all, { recursive: true, force: true }))
    const texts = [...accepted, ...mistakes.map(({ title, text }) => [title, text] as const)]
    for (const [title, text] of texts) {
      mkdirSync(join(fileOf(title), '..'))
      writeFileSync(fileOf(title), text)
    }
    printed = await printedLines(texts.map(([title]) => [fileOf(title), env]))
  })

  it.each(accepted)('accepts %s', (title) => {
    expect(printed[fileOf(title)]).toEqual([])
  })

  it.each(mistakes)('names $title', ({ title, expected, line }) => {
    const stderr = printed[fileOf(title)]?.join('\n') ?? ''
    expect(stderr).not.toBe('')
    for (const pattern of expected) expect(stderr).toMatch(pattern)
    if (line !== undefined) expect(stderr).toMatch(new RegExp(`tollgate\\.yaml:${line}:\\d+`))
    expect(stderr).not.toMatch(/Invalid input|ZodError|node:internal|at .*\.ts:\d+/)
    expect(stderr).not.toContain('sk-env-canary-2')
    expect(stderr).not.toContain('sk-config-canary-1')
  })
})

describe('--validate-only', () => {
  it('accepts a good file', async () => {
    expect(await validate(good)).toEqual({ code: 0, stdout: 'Configuration is valid!\n', stderr: '' })
  })

  it('names all mistakes in one run', async () => {
    const text = good
      .replace('requests: 10', 'requests: many')
      .replace('provider: openai', 'provider: opnai')
      .replace('rules:', 'ruels:')
      .replace('unit: Hours', 'unit: Fortnights')
    const { code, stdout, stderr } = await validate(text)
    expect([code, stdout]).toEqual([1, ''])
    for (const line of [7, 18, 21, 22]) expect(stderr).toMatch(new RegExp(`tollgate\\.yaml:${line}:`))
  })

  it('names the mistake in a file that cannot be read', async () => {
    const missing = await runTollgate(['--validate-only', '-f', join(folder, 'missing.yaml')])
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain('missing.yaml')
    const directory = await runTollgate(['--validate-only', '-f', folder])
    expect(directory.code).toBe(1)
    expect(directory.stderr).toContain(folder)
  })

  it('names the model whose credential file cannot be read', async () => {
    const { code, stderr } = await validate(good.replace(/\$\{OPENAI_API_KEY\}/, '{file: /no/such/file}'))
    expect(code).toBe(1)
    expect(stderr).toBe(
      `${file}:9:24: llm.models[0].params.apiKey.file: /no/such/file cannot be read: there is no such file\n`,
    )
  })

  it('refuses a file of random bytes without a stack trace', async () => {
    const bytes = Buffer.from(Array.from({ length: 4000 }, (_, index) => (index * 7919) % 256))
    const { code, stderr } = await validate(bytes)
    expect(code).toBe(1)
    expect(stderr).not.toMatch(/ at .*\.ts:\d+/)
  })

  it('expands variables to the type that is expected, and never to structure', async () => {
    const text = `llm:\n  port: \${PORT}\n  models:\n    - {name: "\${NAME}", provider: echo}\n`
    expect((await validate(text, { PORT: '4555', NAME: 'a, b]: {c}' })).code).toBe(0)
    expect((await validate(text, { PORT: 'many', NAME: 'x' })).stderr).toMatch(/tollgate\.yaml:2:/)
  })

  it('reads defaults and escaped dollars', async () => {
    const text = `llm:\n  models:\n    - {name: "\${NAME:-echo}", provider: echo, defaults: {user: "a$$b"}}\n`
    expect((await validate(text, {})).code).toBe(0)
  })
})

describe('a start', () => {
  it.each(mistakes.slice(0, 4))('with $title ends with 1 and serves nothing', async ({ text, expected }) => {
    const [port = 0] = await freePorts(1)
    writeFileSync(file, text.replace('\n  models:', `\n  port: ${port}\n  models:`))
    const { code, stderr } = await runTollgate(['-f', file], { env })
    expect(code).toBe(1)
    for (const pattern of expected) expect(stderr).toMatch(pattern)
    await expect(fetch(`http://127.0.0.1:${port}/v1/models`)).rejects.toThrow()
  })

  it('on a port that is in use ends with 1 and names the address', async () => {
    const [admin, stats, readiness] = await freePorts(3)
    const taken = createServer()
    const port = await new Promise<number>((resolve) => {
      taken.listen(0, '127.0.0.1', () => {
        const address = taken.address()
        resolve(address !== null && typeof address === 'object' ? address.port : 0)
      })
    })
    endAfter('test', () => {
      taken.close()
    })
    writeFileSync(
      file,
      `config: {bindAddress: 127.0.0.1, adminAddr: "127.0.0.1:${admin}", statsAddr: "127.0.0.1:${stats}",` +
        ` readinessAddr: "127.0.0.1:${readiness}"}\nllm: {port: ${port}, models: []}\n`,
    )
    const { code, stderr } = await runTollgate(['-f', file])
    expect(code).toBe(1)
    expect(stderr).toContain(`127.0.0.1:${port}`)
    expect(stderr).toMatch(/in use/)
  })
})

describe('the command line', () => {
  it('prints version, help and the schema', async () => {
    expect((await runTollgate(['--version'])).stdout).toMatch(/^tollgate \d+\.\d+\.\d+/)
    expect((await runTollgate(['--help'])).stdout).toContain('--validate-only')
    const schema: unknown = JSON.parse((await runTollgate(['schema'])).stdout)
    expect(schema).toMatchObject({ type: 'object', properties: { llm: expect.anything() } })
  })

  it('prints the CustomResourceDefinitions that the repository contains', async () => {
    const folder = new URL('../../../deploy/crds/', import.meta.url)
    const files = ['gatewaypolicies', 'gatewayparameters', 'gatewaybackends'].map((plural) =>
      readFileSync(new URL(`${plural}.tollgate.dev.yaml`, folder), 'utf8').replaceAll('\r\n', '\n'),
    )
    expect((await runTollgate(['crds'])).stdout).toBe(files.join('---\n'))
  })

  it.each([[['--nonsense']], [['run']], [['-f']]])('refuses %j with a hint', async (args) => {
    const { code, stderr, stdout } = await runTollgate(args)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('--help')
  })
})
