import { checkCel } from '../../cel/checked.ts'
import { referencesVariable } from '../../cel/references.ts'
import { isDerivedHeader, isEditableHeader } from '../../net/http/header-edits.ts'
import { isRequestPseudoHeader } from '../../pipeline/request-edits.ts'
import { cel, type Infer, list, map, name, object, optional } from '../../schema/dsl.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'

const metadataValue = cel({ doc: 'Expression of the value.' })

function transformationOf(
  doc: string,
  { pseudoHeaders, reveals }: { pseudoHeaders: string; reveals: boolean },
) {
  const value = cel({ doc: 'Expression of the value.', reveals })
  return object(
    {
      metadata: optional(
        map(metadataValue, {
          doc: 'Values for later expressions, as `metadata.<name>`; evaluated first.',
          example: { tier: 'default(jwt.tier, "free")' },
        }),
      ),
      replace: optional(
        cel({
          reveals,
          doc: 'Expression of all header fields, as a map of names to values or lists of values; replaces the present ones.',
          example: 'request.headers.filterKeys(k, k.startsWith("x-"))',
        }),
      ),
      add: optional(
        map(value, { doc: 'Values to append to header fields.', example: { 'x-team': 'apiKey.group' } }),
      ),
      set: optional(
        map(value, {
          doc: `Values that replace those of header fields, or of ${pseudoHeaders}.`,
          example: { 'x-user': 'jwt.sub' },
        }),
      ),
      remove: optional(list(name({ doc: 'Name of a field.' }), { doc: 'Header fields to remove.' })),
      body: optional(
        cel({
          reveals,
          doc: 'Expression of the body: text and bytes as they are, other values as JSON. The body is empty if the evaluation fails.',
          example: '{"query": request.headers["x-query"]}',
        }),
      ),
    },
    { doc },
  )
}

/** `transformations`: changes of requests and responses by expressions. */
export const transformationsSchema = object(
  {
    request: optional(
      transformationOf('Changes of the forwarded request.', {
        pseudoHeaders: 'the pseudo-headers `:method`, `:path`, `:authority` and `:scheme`',
        reveals: true,
      }),
    ),
    response: optional(
      transformationOf('Changes of the response.', {
        ...{ pseudoHeaders: 'the pseudo-header `:status`', reveals: false },
      }),
    ),
  },
  {
    doc: 'Changes requests and responses by CEL expressions, in the order `metadata`, `replace`, `add`, `set`, `remove`, `body`. A field whose expression fails is removed.',
  },
)

export type TransformationsConfig = Infer<typeof transformationsSchema>
export type TransformationConfig = NonNullable<TransformationsConfig['request' | 'response']>

export type Phase = 'request' | 'response'

/** Variables of the expressions of both phases. */
export type PhaseVariables = { readonly [phase in Phase]: ReadonlySet<string> }

export type TransformationExpression = { readonly source: string; readonly path: Path; readonly phase: Phase }

/** The expressions of a policy with their paths. */
export function expressionsOfTransformations(config: TransformationsConfig): TransformationExpression[] {
  return [...expressionsOfPhase(config, 'request'), ...expressionsOfPhase(config, 'response')]
}

function expressionsOfPhase(config: TransformationsConfig, phase: Phase): TransformationExpression[] {
  const { metadata = {}, replace, add = {}, set = {}, body } = config[phase] ?? {}
  const maps = Object.entries({ metadata, add, set }).flatMap(([field, values]) =>
    Object.entries(values).map(([key, source]) => ({ source, path: [phase, field, key], phase })),
  )
  const single = Object.entries({ replace, body }).flatMap(([field, source]) =>
    source === undefined ? [] : [{ source, path: [phase, field], phase }],
  )
  return [...maps, ...single]
}

/** Whether expressions of the request need the parsed LLM request. */
export function readsLlmRequest(config: TransformationsConfig): boolean {
  return expressionsOfPhase(config, 'request').some(({ source }) => readsLlm(source))
}

/** Whether an expression needs the parsed LLM request. */
export function readsLlm(source: string): boolean {
  return referencesVariable(source, 'llmRequest') || referencesVariable(source, 'llm')
}

/** Reports invalid expressions, and headers that cannot be changed. */
export function checkTransformations(
  config: TransformationsConfig,
  variables: PhaseVariables,
  report: ReportIssue,
): void {
  for (const { source, path, phase } of expressionsOfTransformations(config)) {
    checkCel(source, variables[phase], (message) => report(path, message))
  }
  for (const phase of ['request', 'response'] as const) {
    const { add = {}, set = {}, remove = [] } = config[phase] ?? {}
    for (const field of Object.keys(add))
      checkName(field, { phase, setting: 'add' }, (message) => report([phase, 'add', field], message))
    for (const field of Object.keys(set))
      checkName(field, { phase, setting: 'set' }, (message) => report([phase, 'set', field], message))
    remove.forEach((field, index) => {
      checkName(field, { phase, setting: 'remove' }, (message) => report([phase, 'remove', index], message))
    })
  }
}

function checkName(
  field: string,
  { phase, setting }: { phase: Phase; setting: 'add' | 'set' | 'remove' },
  report: (message: string) => void,
): void {
  const lower = field.toLowerCase()
  if (lower.startsWith(':')) {
    const isKnown = phase === 'request' ? isRequestPseudoHeader(lower) : lower === ':status'
    const known = phase === 'request' ? ':method, :path, :authority and :scheme' : ':status'
    if (!isKnown) report(`is not a pseudo-header of a ${phase}: use ${known}`)
    else if (setting !== 'set') report('is a pseudo-header: use set')
    return
  }
  if (phase === 'request' && lower === 'host') {
    if (setting !== 'set') report('host must be replaced: use set')
    return
  }
  if (isDerivedHeader(lower)) report(`${lower} is generated for each message: remove this entry`)
  else if (!isEditableHeader(lower)) report(`must be the name of a header, got "${field}"`)
}
