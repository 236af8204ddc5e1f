import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { referencesField } from '../../cel/references.ts'
import type { TransformationConfig } from './config.ts'

/** Compiled value of a header or of metadata. `name` is in lower case for headers. */
export type NamedProgram = { readonly name: string; readonly program: CelProgram }

/** Compiled changes of one message. */
export type Changes = {
  readonly metadata: readonly NamedProgram[]
  readonly replace: CelProgram | undefined
  readonly headers: readonly (NamedProgram & { readonly kind: 'append' | 'set' })[]
  /** Pseudo-headers, and `host` of requests as `:authority`. */
  readonly pseudoHeaders: readonly NamedProgram[]
  readonly remove: readonly string[]
  readonly body: CelProgram | undefined
  readonly readsResponseBody: boolean
  /** The new body derives from the response's. */
  readonly changesResponseBody: boolean
  /** Limit of the body that the expression creates. */
  readonly maxBodyBytes: number
}

/** Compiles the changes of one message. */
export function compileChanges(
  { metadata = {}, replace, add = {}, set = {}, remove = [], body }: TransformationConfig,
  variables: ReadonlySet<string>,
  maxBodyBytes: number,
): Changes {
  const compile = (source: string) => compileCheckedCel(source, variables)
  const named = (values: Readonly<Record<string, string>>) =>
    Object.entries(values).map(([name, source]) => ({ name: name.toLowerCase(), program: compile(source) }))
  const sets = named(set).map((one) => (one.name === 'host' && !isOfReply(variables) ? authority(one) : one))
  const compiled = {
    metadata: Object.entries(metadata).map(([name, source]) => ({ name, program: compile(source) })),
    replace: replace === undefined ? undefined : compile(replace),
    headers: [
      ...named(add).map((one) => ({ ...one, kind: 'append' as const })),
      ...sets.filter(({ name }) => !isPseudo(name)).map((one) => ({ ...one, kind: 'set' as const })),
    ],
    pseudoHeaders: sets.filter(({ name }) => isPseudo(name)),
    remove: remove.map((name) => name.toLowerCase()),
    body: body === undefined ? undefined : compile(body),
  }
  const programs = [
    ...[...compiled.metadata, ...compiled.headers, ...compiled.pseudoHeaders].map(({ program }) => program),
    ...[compiled.replace, compiled.body].flatMap((program) => program ?? []),
  ]
  return {
    ...compiled,
    readsResponseBody: programs.some(readsBodyOfResponse),
    changesResponseBody: compiled.body !== undefined && readsBodyOfResponse(compiled.body),
    maxBodyBytes,
  }
}

function readsBodyOfResponse({ source }: CelProgram): boolean {
  return referencesField(source, 'response', 'body')
}

function isPseudo(name: string): boolean {
  return name.startsWith(':')
}

function isOfReply(variables: ReadonlySet<string>): boolean {
  return variables.has('response')
}

function authority({ program }: NamedProgram): NamedProgram {
  return { name: ':authority', program }
}
