import { type CelIssue, compileCel } from '../../cel/cel.ts'
import { callableNames } from '../../cel/check-names.ts'
import { parseCustomFunctions, withCustomFunctions } from '../../cel/custom-functions.ts'
import { type Members, membersOf } from '../../cel/members.ts'
import { type LedgerQueries, QueryRefused } from '../../ledger/query/query.ts'
import type { Clock } from '../../lib/clock.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'
import { notConfigured } from '../logs/logs.ts'
import { evaluateCel } from './evaluate.ts'
import { type CelFacts, recordedFacts, sampleFacts } from './facts.ts'
import { type CelScope, celScopes, variableDocs } from './scopes.ts'

export type CelOptions = {
  /** Undefined without a ledger. */
  readonly queries: Pick<LedgerQueries, 'readRequest'> | undefined
  readonly clock: Clock
  /** `config.customFunctions` of the active configuration. */
  readonly customFunctions: () => string | undefined
}

/** Endpoints of expressions: variables, check, facts, evaluation. They change nothing. */
export function celEndpoints(options: CelOptions): AdminEndpoint[] {
  return [
    {
      path: '/api/cel/variables',
      methods: { GET: { respond: async () => ({ kind: 'json', value: describeScopes() }) } },
    },
    { path: '/api/cel/check', methods: { POST: { respond: (call) => check(call, options) } } },
    {
      path: '/api/cel/facts',
      methods: { GET: { query: ['scope', 'requestId'], respond: (call) => readFacts(call, options) } },
    },
    { path: '/api/cel/evaluate', methods: { POST: { respond: (call) => evaluate(call, options) } } },
  ]
}

function describeScopes(): object {
  return {
    scopes: celScopes.map(({ name, doc, variables }) => ({
      name,
      doc,
      variables: [...variables]
        .filter((variable) => !variable.includes('.'))
        .map((variable) => ({
          name: variable,
          doc: variableDocs[variable] ?? '',
          ...describeMembers(variable, membersOf(variable, variables)),
        })),
    })),
    functions: callableNames(),
  }
}

/** `open` marks members that depend on the data, such as claims. */
function describeMembers(path: string, members: Members): object {
  if (members === 'leaf') return {}
  if (members === 'any') return { open: true }
  return {
    members: Object.entries(members).map(([name, inner]) => {
      const place = `${path}.${name}`
      return { name, doc: variableDocs[place] ?? '', ...describeMembers(place, inner) }
    }),
  }
}

/** An expression with the custom functions that it uses. */
function complete(expression: string, { customFunctions }: CelOptions): string {
  const parsed = parseCustomFunctions(customFunctions() ?? '')
  return parsed.kind === 'functions' ? withCustomFunctions(expression, parsed.functions) : expression
}

async function check({ readJson }: AdminCall, options: CelOptions): Promise<AdminResult> {
  const read = await readJson()
  if (read.kind === 'refused') return read
  const { expression, roots, scope, ...rest } = read.value
  const stray = refuseStray(rest)
  if (stray) return stray
  if (typeof expression !== 'string') return refusal(422, 'expression must be a text')
  const variables = readVariables(roots, scope)
  if (variables.kind === 'refused') return variables
  const compiled = compileCel(complete(expression, options), variables.names)
  const value = compiled.kind === 'program' ? { ok: true } : { ok: false, ...placeOf(compiled, expression) }
  return { kind: 'json', value }
}

function refuseStray(rest: JsonObject): Refusal | undefined {
  const [stray] = Object.keys(rest)
  return stray === undefined ? undefined : refusal(422, `unknown member ${stray.slice(0, 100)}`)
}

type Variables = { readonly kind: 'variables'; readonly names: ReadonlySet<string> }

const maxRoots = 50

/** The variables of a scope, or those of a schema (`x-roots`); `http` and `llm` together by default. */
function readVariables(roots: JsonValue | undefined, scope: JsonValue | undefined): Variables | Refusal {
  if (scope !== undefined) {
    const found = readScope(scope)
    return found.kind === 'refused' ? found : { kind: 'variables', names: found.scope.variables }
  }
  if (roots === undefined) {
    const names = celScopes.flatMap(({ name, variables }) => (name === 'llm' ? [...variables] : []))
    return { kind: 'variables', names: new Set(names) }
  }
  if (!Array.isArray(roots) || roots.length > maxRoots)
    return refusal(422, 'roots must be a list of variables')
  const known = new Set(celScopes.flatMap(({ variables }) => [...variables]))
  const names = roots.filter((root): root is string => typeof root === 'string' && isVariable(root, known))
  if (names.length < roots.length) return refusal(422, 'roots must be variables of `/api/cel/variables`')
  return { kind: 'variables', names: new Set(names) }
}

function isVariable(name: string, known: ReadonlySet<string>): boolean {
  return known.has(name) || /^[a-z][A-Za-z]{0,30}(\.[a-z][A-Za-z]{0,30}){0,3}$/.test(name)
}

function readScope(
  name: JsonValue | undefined,
): { readonly kind: 'scope'; readonly scope: CelScope } | Refusal {
  const scope = celScopes.find((each) => each.name === name)
  if (scope !== undefined) return { kind: 'scope', scope }
  return refusal(422, `scope must be ${celScopes.map((each) => each.name).join(', ')}`)
}

/** Position of an issue; `offset` counts UTF-16 units. */
function placeOf({ message, line, column }: CelIssue, source: string): object {
  const before = source.split('\n').slice(0, line - 1)
  const offset = before.reduce((sum, text) => sum + text.length + 1, 0) + column - 1
  return { message, offset, line, column }
}

async function readFacts({ query }: AdminCall, options: CelOptions): Promise<AdminResult> {
  const found = readScope(query.get('scope') ?? 'http')
  if (found.kind === 'refused') return found
  const facts = await factsOf(found.scope, query.get('requestId'), options)
  if (facts.kind === 'refused') return facts
  return { kind: 'json', value: facts.facts }
}

async function factsOf(
  scope: CelScope,
  requestId: string | undefined,
  { queries }: CelOptions,
): Promise<{ readonly kind: 'facts'; readonly facts: CelFacts } | Refusal> {
  if (requestId === undefined) return { kind: 'facts', facts: sampleFacts(scope) }
  if (queries === undefined) return notConfigured
  if (requestId.length > maxIdLength || requestId.includes('\0')) return unknownRequest
  try {
    const details = await queries.readRequest(requestId)
    return details === undefined ? unknownRequest : { kind: 'facts', facts: recordedFacts(scope, details) }
  } catch (error) {
    if (error instanceof QueryRefused) return refusal(503, error.message)
    throw error
  }
}

const maxIdLength = 600
const unknownRequest = refusal(404, 'no request has this id')

async function evaluate({ readJson }: AdminCall, options: CelOptions): Promise<AdminResult> {
  const read = await readJson()
  if (read.kind === 'refused') return read
  const { expression, scope, facts, requestId, ...rest } = read.value
  const stray = refuseStray(rest)
  if (stray) return stray
  if (typeof expression !== 'string') return refusal(422, 'expression must be a text')
  if (facts !== undefined && !isJsonObject(facts)) return refusal(422, 'facts must be an object')
  if (requestId !== undefined && typeof requestId !== 'string')
    return refusal(422, 'requestId must be a text')
  const found = readScope(scope ?? 'http')
  if (found.kind === 'refused') return found
  const given = facts === undefined ? await factsOf(found.scope, requestId, options) : undefined
  if (given?.kind === 'refused') return given
  const values = facts ?? given?.facts.facts ?? {}
  const { variables } = found.scope
  const result = evaluateCel(complete(expression, options), variables, {
    facts: values,
    clock: options.clock,
  })
  switch (result.kind) {
    case 'value':
      return { kind: 'json', value: { value: result.value, type: result.type } }
    case 'failed':
      return { kind: 'json', value: { error: { message: result.message } } }
    case 'issue':
      return { kind: 'json', value: { error: placeOf(result.issue, expression) } }
  }
}
