import { isUtf8 } from 'node:buffer'
import type { WorkQueue } from '../scheduling/work-queue.ts'
import { buildExact } from './exact.ts'
import { type LargeJson, type LargeJsonOptions, readJsonSteps } from './large/large.ts'
import { defaultJsonLimits, type JsonLimits } from './limits.ts'
import { type JsonText, type JsonTextProblem, largeJsonText, readJsonObject } from './text.ts'

/** Bodies up to this size are read in one step: 5 ms in the worst case, 0.3 ms in the common one. */
const maxInlineBytes = 256 * 1024

export function isLarge(bytes: Uint8Array): boolean {
  return bytes.byteLength > maxInlineBytes
}

export type ReadJson = JsonText | JsonTextProblem

/** Reads a JSON object from bytes: in one step, or a large one in slices. */
export function readJson(
  bytes: Buffer,
  workQueue: WorkQueue,
  limits: JsonLimits = defaultJsonLimits,
): ReadJson | Promise<ReadJson> {
  if (isLarge(bytes)) return readLarge(bytes, workQueue, limits)
  if (!isUtf8(bytes)) return { kind: 'invalid', message: 'not valid UTF-8' }
  return readJsonObject(bytes.toString(), limits)
}

/** Reads a large JSON object in slices. */
export function readJsonIncrementally(
  bytes: Buffer,
  workQueue: WorkQueue,
  options: LargeJsonOptions,
): Promise<LargeJson | JsonTextProblem> {
  return workQueue.run(readJsonSteps(bytes, options))
}

async function readLarge(bytes: Buffer, workQueue: WorkQueue, limits: JsonLimits): Promise<ReadJson> {
  const json = await readJsonIncrementally(bytes, workQueue, { limits })
  if (json.kind !== 'object') return json
  const { value, members, hasLargeNumbers } = json
  const reread = hasLargeNumbers
    ? await readJsonIncrementally(bytes, workQueue, { limits, unchecked: buildExact })
    : undefined
  const exact = reread?.kind === 'object' ? reread.value : undefined
  return largeJsonText(value, { bytes, members, exact })
}
