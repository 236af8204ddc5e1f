import type { Config } from '../config/schema.ts'
import { serializeChunks } from '../lib/scheduling/chunked-clone.ts'
import { diffConfig } from './messages/config-patch.ts'

/** Returns the chunks of the patch between two configurations. */
export type PatchOf = (active: Config | undefined, next: Config) => readonly Uint8Array<ArrayBuffer>[]

type Created = { active: Config | undefined; next: Config; chunks: Uint8Array<ArrayBuffer>[] }

/** Creates each patch once for data planes that prepare a change together. `isMarked` as in `diffConfig`. */
export function createPatches(isMarked: (node: object) => boolean): PatchOf {
  /** Weak: a patch and its configurations are large, and not used after the preparation. */
  let last: WeakRef<Created> | undefined
  return (active, next) => {
    const known = last?.deref()
    if (known !== undefined && known.active === active && known.next === next) return known.chunks
    const chunks = serializeChunks(diffConfig(active, next, isMarked))
    last = new WeakRef({ active, next, chunks })
    return chunks
  }
}
