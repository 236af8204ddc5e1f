import { editBytes } from '../../../lib/json/edit.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { isLarge, readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { writeJsonSteps } from '../../../lib/json/write.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { readExactObject } from '../translate/exact-json.ts'
import type { PromptCachingConfig, PromptsConfig } from './config.ts'
import { type SplitFields, withDefault, withField } from './field-pointers.ts'
import { compileFinalTransformation, type FinalTransform } from './final-transformation.ts'
import { compilePromptCaching } from './prompt-caching.ts'
import { compilePrompts } from './prompts.ts'
import type { RewriteObject } from './rewrite-object.ts'

/** Changes of request bodies beyond fields of the outermost object. */
export type Rewrite = {
  /** Before translation, in the API of the client. */
  readonly before: RewriteObject | undefined
  /** After translation, in the API of the provider. */
  readonly after: RewriteObject | undefined
  /** Last. */
  readonly final: FinalTransform | undefined
  /** Whether `before` adds prompts, which needs a known API. */
  readonly addsPrompts: boolean
}

export type RewriteSettings = {
  readonly defaults: SplitFields
  readonly overrides: SplitFields
  readonly prompts: PromptsConfig | undefined
  readonly promptCaching: PromptCachingConfig | undefined
  readonly finalTransformation: Readonly<Record<string, string>> | undefined
}

/** Compiles the changes; undefined without any, so that their absence costs nothing per request. */
export function compileRewrite(settings: RewriteSettings): Rewrite | undefined {
  const { promptCaching, finalTransformation } = settings
  const prompts = compilePrompts(settings.prompts)
  const rewrite: Rewrite = {
    before: chained(compileFields(settings), prompts),
    addsPrompts: prompts !== undefined,
    after: promptCaching && compilePromptCaching(promptCaching),
    final: finalTransformation && compileFinalTransformation(finalTransformation),
  }
  const { before, after, final } = rewrite
  return before === undefined && after === undefined && final === undefined ? undefined : rewrite
}

function chained(
  first: RewriteObject | undefined,
  second: RewriteObject | undefined,
): RewriteObject | undefined {
  if (first === undefined || second === undefined) return first ?? second
  return (object, endpoint) => second(first(object, endpoint), endpoint)
}

/** Overrides by path, then defaults by path; undefined without any. */
function compileFields({ defaults, overrides }: RewriteSettings): RewriteObject | undefined {
  if (defaults.nested.length + overrides.nested.length === 0) return undefined
  return (object) => {
    const set = overrides.nested.reduce((body, { path, value }) => withField(body, path, value), object)
    return defaults.nested.reduce(
      (body, { path, value, withinPresent }) =>
        withinPresent && !Object.hasOwn(set, path[0]) ? body : withDefault(body, path, value),
      set,
    )
  }
}

/** A body with its text. */
export type Body = { readonly json: JsonText; readonly bytes: Buffer }

/**
 * The body after a change; the same body if nothing changes. Undefined for a structure beyond the limits of
 * bodies that the gateway writes.
 */
export async function rewriteBody(
  body: Body,
  change: (object: JsonObject) => JsonObject,
  workQueue: WorkQueue,
): Promise<Body | undefined> {
  // Numbers remain exact, as in a body that is not changed.
  const object = await readExactObject(body.bytes, workQueue)
  if (object === undefined) return undefined
  const changed = change(object)
  if (changed === object) return body
  const set = new Map<string, string>()
  for (const [name, value] of Object.entries(changed)) {
    if (value === object[name]) continue
    const text = isLarge(body.bytes) ? await workQueue.run(writeJsonSteps(value)) : JSON.stringify(value)
    set.set(name, text.toString())
  }
  return readBody(editBytes(body.json, { set }), workQueue)
}

/** Reads a body that the gateway has written. Undefined for a structure beyond the limits. */
export async function readBody(bytes: Buffer, workQueue: WorkQueue): Promise<Body | undefined> {
  const json = await readJson(bytes, workQueue, answerLimits)
  return json.kind === 'object' ? { json, bytes } : undefined
}
