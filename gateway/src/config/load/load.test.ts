import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import {
  anyOfShapes,
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  integer,
  jsonObject,
  list,
  map,
  name,
  number,
  object,
  optional,
  port,
  secret,
  secretSource,
  string,
} from '../../schema/dsl.ts'
import { type ConfigCheck, formatIssue, type LoadResult, loadConfigText } from './load.ts'

const doc = { doc: 'x' }

const limit = anyOfShapes(
  [
    exactlyOne(
      { requests: integer(doc, { min: 1 }), tokens: integer(doc, { min: 1 }) },
      { unit: enumeration(['Seconds', 'Minutes'], doc) },
      doc,
    ),
    object({ maxTokens: integer(doc), tokensPerFill: integer(doc), fillInterval: duration(doc) }, doc),
  ],
  doc,
)

const params = object({ model: optional(string(doc)), apiKey: optional(secretSource(doc)) }, doc)
const model = object(
  {
    name: name(doc),
    provider: string(doc),
    params: optional(params),
    overrides: optional(jsonObject(doc)),
    weight: optional(number(doc)),
  },
  doc,
)
const llm = object(
  {
    port: optional(port(doc)),
    models: list(model, doc),
    strict: optional(boolean(doc)),
    secrets: optional(map(secret(doc), doc)),
    policies: optional(
      object(
        {
          localRateLimit: optional(list(limit, doc)),
          rules: optional(list(cel(doc), doc)),
        },
        doc,
      ),
    ),
  },
  doc,
)
const schema = object({ llm: optional(llm) }, doc)

const uniqueModels: ConfigCheck<ReturnType<typeof schema.parse>> = (config, report) => {
  const seen = new Set<string>()
  for (const [index, { name: modelName }] of (config.llm?.models ?? []).entries()) {
    if (seen.has(modelName)) report(['llm', 'models', index, 'name'], `duplicate model name "${modelName}"`)
    seen.add(modelName)
  }
}

function load(text: string, env: Record<string, string> = {}): LoadResult<unknown> {
  const celCheck = (source: string) => {
    const at = source.indexOf('!!!')
    return at === -1 ? undefined : { message: 'CEL syntax error', at }
  }
  return loadConfigText({
    text,
    file: 'c.yaml',
    env,
    schema,
    checks: [uniqueModels],
    formats: { cel: celCheck },
  })
}

function issues(text: string, env?: Record<string, string>): string[] {
  const result = load(text, env)
  return result.kind === 'issues' ? result.issues.map(formatIssue) : []
}

function config(text: string, env?: Record<string, string>): unknown {
  const result = load(text, env)
  return result.kind === 'config' ? result.config : result.issues.map(formatIssue)
}

it.each(['', '# only a comment\n', '---\n', '\uFEFF', '{}', 'null', '\r\n'])(
  'takes an empty file as valid',
  (text) => {
    expect(config(text)).toEqual({})
  },
)

it('reads a file, CRLF and byte order mark included', () => {
  expect(
    config('\uFEFFllm:\r\n  port: 4000\r\n  models:\r\n    - name: a\r\n      provider: echo\r\n'),
  ).toEqual({
    llm: { port: 4000, models: [{ name: 'a', provider: 'echo' }] },
  })
})

it('omits keys without a value', () => {
  expect(config('llm:\n  policies:\n  models: []')).toEqual({ llm: { models: [] } })
})

it('returns the position of each value and key', () => {
  const result = load('llm:\n  models:\n  - name: a\n    provider: echo\n')
  if (result.kind === 'issues') throw new Error('unexpected issues')
  expect(result.positions(['llm', 'models', 0, 'provider'])).toEqual({ line: 4, column: 15 })
  expect(result.positions(['llm', 'models', 0, 'provider'], 'key')).toEqual({ line: 4, column: 5 })
  expect(result.positions(['llm', 'models', 0, 'params', 'model'])).toEqual({ line: 3, column: 5 })
})

it('reports all mistakes in one run, each with its position', () => {
  const text = `llm:
  prot: 4000
  models:
  - name: a
    provder: echo
  - name: ""
    provider: 5
  policies:
    localRateLimit:
    - requests: 1
      tokens: 1
      unit: Seconds
    rules: ['a !!! b']
`
  expect(issues(text)).toEqual([
    'c.yaml:2:3: llm.prot: unknown key `prot`, did you mean `port`?',
    'c.yaml:4:5: llm.models[0].provider: is required: a string',
    'c.yaml:5:5: llm.models[0].provder: unknown key `provder`, did you mean `provider`?',
    'c.yaml:6:11: llm.models[1].name: must not be empty',
    'c.yaml:7:15: llm.models[1].provider: expected a string, got the number 5; put it in quotes',
    'c.yaml:10:7: llm.policies.localRateLimit[0]: exactly one of requests, tokens is allowed here; found both requests and tokens',
    'c.yaml:13:16: llm.policies.rules[0]: CEL syntax error',
  ])
})

it('runs the checks of the whole file despite a misspelt key', () => {
  const text = 'llm:\n  models:\n  - {name: a, provider: echo}\n  - {name: a, provider: echo, wieght: 1}\n'
  expect(issues(text)).toEqual([
    'c.yaml:4:12: llm.models[1].name: duplicate model name "a"',
    'c.yaml:4:31: llm.models[1].wieght: unknown key `wieght`, did you mean `weight`?',
  ])
})

it('reports keys of agentgateway', () => {
  const text = 'mcp: {}\nworkloads: []\n'
  expect(issues(text)).toEqual([
    "c.yaml:1:1: mcp: agentgateway's mcp is not supported",
    "c.yaml:2:1: workloads: agentgateway's workloads is not supported: use backends with endpoints",
  ])
})

it('expands references in values only', () => {
  const text = `# $UNSET\nllm:\n  models:\n  - {name: "\${A}-$B$$", provider: '\${C:-echo}', params: {model: "cost $ 5$"}}\n`
  expect(config(text, { A: 'x: {y: 1}', B: '$A # no' })).toEqual({
    llm: { models: [{ name: 'x: {y: 1}-$A # no$', provider: 'echo', params: { model: 'cost $ 5$' } }] },
  })
})

it('converts an unquoted reference to the type in the schema', () => {
  const text = `llm:
  port: \${PORT}
  strict: $STRICT
  models:
  - name: $NAME
    provider: echo
    params: {apiKey: $KEY}
    overrides: {temperature: $T, quoted: "$T", seed: $SEED}
`
  const env = { PORT: '4000', STRICT: 'true', NAME: '5', KEY: '0123', T: '0.5', SEED: '12345678901234567890' }
  expect(config(text, env)).toEqual({
    llm: {
      port: 4000,
      strict: true,
      models: [
        {
          name: '5',
          provider: 'echo',
          params: { apiKey: '0123' },
          overrides: { temperature: 0.5, quoted: '0.5', seed: '12345678901234567890' },
        },
      ],
    },
  })
})

it('does not expand keys', () => {
  expect(config('llm: {models: [], secrets: {$NAME: x}}')).toEqual({
    llm: { models: [], secrets: { $NAME: 'x' } },
  })
})

it('never parses a value as a list or an object', () => {
  expect(issues('llm: $LLM', { LLM: '{models: []}' })).toEqual([
    'c.yaml:1:6: llm: expected an object, got a string from the environment',
  ])
})

it('reports that a quoted reference is text, without its value', () => {
  expect(issues('llm: {models: [], port: "$PORT"}', { PORT: 'hunter2' })).toEqual([
    'c.yaml:1:25: llm.port: expected a port number, got a string from the environment; a reference in quotes is always text',
  ])
})

it('reports each unset variable with its position', () => {
  expect(issues(`llm:\n  port: $PORT\n  models:\n  - {name: "a \${NAME}", provider: echo}`)).toEqual([
    'c.yaml:2:9: llm.port: environment variable not found: PORT (`$$` stands for a plain dollar sign)',
    'c.yaml:4:15: llm.models[0].name: environment variable not found: NAME (`$$` stands for a plain dollar sign)',
  ])
})

it.each([
  ['llm: [1, 2', '1:11', 'unclosed bracket before'],
  ['llm: "x', '1:8', 'unclosed quote here or before'],
  ['llm: ["x"y]', '1:10', 'missing comma, space, or `:` after a key'],
  ['llm: a: b', '1:6', 'a nested mapping cannot start here'],
  ['llm:\n\tport: 1', '2:1', 'tabs as indentation'],
  ['llm: @x', '1:6', 'text cannot start with this character'],
  ['a: 1\n---\nb: 2', '2:1', 'more than one YAML document'],
  ['llm: !custom x', '1:6', 'YAML tag is not supported'],
  ['llm: *x', '1:6', 'this alias has no preceding anchor'],
  ['llm: &a [*a]', '1:10', 'this alias is inside the value of its anchor'],
  ['llm: {}\nllm: {}', '2:1', 'duplicate key `llm`'],
  ['llm: {1: a, "1": b}', '1:13', 'duplicate key `1`'],
  ['<<: {}', '1:1', 'YAML merge keys (`<<`) are not supported'],
  ['llm: {__proto__: {}}', '1:7', 'the key `__proto__` is not allowed'],
  ['? [a]\n: b', '1:3', 'a key must be text'],
  ['llm: .nan', '1:6', 'this is not a finite number'],
  ['%YAML 1.1\n---\nllm: 2001-01-01', '3:6', 'this YAML type is not supported'],
])('reports %j as one mistake at its position', (text, place, message) => {
  const found = issues(text).filter((issue) => issue.includes(message))
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(`c.yaml:${place}: `)
})

it.each([
  [`llm: {port: \${PORT}}`, '1:13', `'\${PORT}'`],
  [`llm: [a, x-\${A:-b}, c]`, '1:12', `'\${A:-b}'`],
])('reports the unquoted reference of %j once, with the quotes to add', (text, place, reference) => {
  expect(issues(text)).toEqual([
    `c.yaml:${place}: a reference to the environment inside brackets must be in quotes: ${reference}`,
  ])
})

it('reports only the first of the syntax errors that follow from one mistake', () => {
  expect(issues('llm:\n  models: [\n  - x: {{\n  foo\n  bar: "')).toHaveLength(1)
})

it('checks the list items after a malformed one, at their own paths', () => {
  const text =
    'llm:\n  models:\n  - {provider: echo}\n  - {name: a, provider: echo}\n  - {name: a, provider: echo}'
  expect(issues(text)).toEqual([
    'c.yaml:3:5: llm.models[0].name: is required: a string',
    'c.yaml:5:12: llm.models[2].name: duplicate model name "a"',
  ])
})

it('never quotes PEM text', () => {
  const pem = '-----BEGIN PRIVATE KEY----- c2VjcmV0'
  const found = issues(`llm: {port: "${pem}", models: [], "${pem}": 1}`)
  expect(found.join()).not.toContain('c2VjcmV0')
  expect(found).toHaveLength(2)
})

it('refuses integers that would be rounded, without quoting them', () => {
  const text =
    'llm:\n  models:\n  - {name: a, provider: echo, params: {apiKey: 12345678901234567890}, overrides: {seed: 9007199254740993}}'
  const found = issues(text)
  expect(found.map((issue) => issue.slice(0, 'c.yaml:3:48'.length))).toEqual(['c.yaml:3:48', 'c.yaml:3:89'])
  expect(found.join()).not.toContain('1234567890')
})

it('bounds the expansion of aliases', () => {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const items = level === 0 ? 'x' : Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')
    return `a${level}: &a${level} [${items}]`
  })
  const found = issues(levels.join('\n'))
  expect(
    found.filter((issue) => issue.includes('the aliases of this file expand to more than is allowed')),
  ).toHaveLength(1)
})

it('expands aliases into copies', () => {
  const text =
    'llm:\n  models:\n  - {name: a, provider: echo, params: &p {model: m}}\n  - {name: b, provider: echo, params: *p}'
  expect(config(text)).toMatchObject({
    llm: { models: [{ params: { model: 'm' } }, { params: { model: 'm' } }] },
  })
})

it('never quotes secrets in messages about any mistake', () => {
  const secretText = 'sk-hunter2'
  const texts = [
    `llm: {models: [], secrets: {a: [${secretText}]}}`,
    `llm: {models: [], secrets: ${secretText}}`,
    `llm: {models: [{name: a, provider: b, params: {apiKey: {file: [${secretText}]}}}]}`,
    `llm: {models: [{name: a, provider: b, params: ${secretText}}]}`,
    `llm: {models: "${secretText}" "${secretText}"}`,
    `llm: {models: [], secrets: {a: |${secretText}`,
    `llm: |${secretText}\n x`,
  ]
  for (const text of texts) {
    expect(issues(text)).not.toEqual([])
    expect(issues(text).join()).not.toContain('hunter2')
  }
})

it.each([
  ['deep brackets', '['.repeat(100_000)],
  ['closed deep brackets', `${'['.repeat(50_000)}${']'.repeat(50_000)}`],
  ['deep dashes', '- '.repeat(50_000)],
  ['deep keys', Array.from({ length: 500 }, (_, level) => `${' '.repeat(level)}a:`).join('\n')],
  ['deep objects', `${'{a: '.repeat(50_000)}`],
])('survives %s', (_kind, text) => {
  expect(issues(text)).not.toEqual([])
})

it('survives a scalar of a megabyte', () => {
  const text = 'x$ '.repeat(350_000)
  const loaded = load(`llm: {models: [{name: "${text}", provider: echo}]}`)
  expect(loaded.kind).toBe('config')
  expect(issues(`llm: {models: ${text}}`).join().length).toBeLessThan(200)
  expect(issues(`llm: {models: ${'$NONE '.repeat(200_000)}}`)).toHaveLength(1)
})

it('limits an issue to one printable line', () => {
  const found = issues(`"a\\n\\e[31m${'k'.repeat(900)}": 1\nllm: $${'N'.repeat(5_000)}`)
  expect(found).toHaveLength(2)
  for (const issue of found) {
    expect(issue.length).toBeLessThan(1_000)
    expect(issue).not.toMatch(/\p{Cc}/u)
  }
})

it('bounds the number of issues', () => {
  const keys = Array.from({ length: 2_000 }, (_, index) => `k${index}: 1`).join('\n')
  const found = issues(keys)
  expect(found).toHaveLength(501)
  expect(found.at(-1)).toBe('c.yaml:1:1: and 1500 more mistakes')
})

it('reads JSON unchanged if the schema accepts any', () => {
  const free = object({ value: optional(jsonObject(doc)) }, doc)
  const key = fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((text) => text !== '__proto__' && text !== '<<' && !text.includes('$'))
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.maxSafeInteger(),
      tie('list'),
      tie('map'),
    ),
    list: fc.array(tie('value'), { maxLength: 4 }),
    map: fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  }))
  fc.assert(
    fc.property(
      fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true }),
      fc.boolean(),
      (map, pretty) => {
        const text = JSON.stringify({ value: map }, null, pretty ? 2 : 0).replaceAll('$', '$$$$')
        const result = loadConfigText({ text, file: 'c.json', env: {}, schema: free, checks: [] })
        expect(result).toMatchObject({ kind: 'config', config: { value: map } })
      },
    ),
  )
})

it('returns a configuration or at least one issue for any text, and never throws', () => {
  const piece = fc.constantFrom(
    ...[
      'llm',
      'models',
      ':',
      ': ',
      '- ',
      '\n',
      '  ',
      '\t',
      '[',
      ']',
      '{',
      '}',
      ',',
      '"',
      "'",
      '&a',
      '*a',
      '|',
      '>',
      '!',
      '#',
    ],
    ...[
      '$X',
      '${',
      '? ',
      '---\n',
      '...\n',
      '%',
      '@',
      '<<',
      '1e999',
      '0x1',
      'null',
      '\uFEFF',
      '\r',
      '\0',
      '\u2028',
      'é',
      '😀',
    ],
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(text, (source) => {
      const result = load(source)
      if (result.kind === 'config') return
      expect(result.issues.length).toBeGreaterThan(0)
      for (const { line, column, message } of result.issues) {
        expect(line).toBeGreaterThan(0)
        expect(column).toBeGreaterThan(0)
        expect(message).not.toBe('')
      }
    }),
    { numRuns: 500 },
  )
})

it('takes time in proportion to the mistakes of a large file', async () => {
  const text = `llm:\n  models: []\n  secrets:\n${Array.from({ length: 30_000 }, (_, index) => `    key${index}: 1\n`).join('')}`
  // A search per mistake would take minutes.
  await expectBelow(10_000, () => cpuMsOf(() => expect(issues(text)).toHaveLength(501)))
})

it('checks the valid parts despite invalid or incomplete ones', () => {
  const found = issues(`llm:
  models:
    - {name: a, provider: echo}
    - {name: a, provider: echo}
  policies:
    localRateLimit:
      - {requests: many, unit: Seconds}
      - {unit: Fortnights}
`)
  expect(found.join('\n')).toContain('llm.models[1].name: duplicate model name "a"')
  expect(found.join('\n')).toContain('localRateLimit[0].requests')
  expect(found.join('\n')).toContain('localRateLimit[1]')
})

it('reports a mistake of both a format and a check once', () => {
  const text = 'llm:\n  models: []\n  policies:\n    rules: ["broken("]\n'
  const result = loadConfigText({
    text,
    file: 'tollgate.yaml',
    env: {},
    schema,
    checks: [(_, report) => report(['llm', 'policies', 'rules', 0], 'does not compile')],
    formats: { cel: () => ({ message: 'syntax error', at: 6 }) },
  })
  expect(result.kind === 'issues' && result.issues.map(formatIssue)).toEqual([
    'tollgate.yaml:4:20: llm.policies.rules[0]: syntax error',
  ])
})
