import { createHash, hkdfSync, randomUUID } from 'node:crypto'
import * as nodeFiles from 'node:fs/promises'
import { join } from 'node:path'
import { sealText, unsealText } from '../../../identity/sealed-text.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { createLru } from '../../../lib/lru.ts'

/** Values by key, encrypted at rest. */
export type TokenStore = {
  /** Undefined for a missing or unreadable value. Rejects if the folder is not readable. */
  read(key: string): Promise<JsonObject | undefined>
  /** Rejects if the folder is not writable. */
  write(key: string, value: JsonObject): Promise<void>
  remove(key: string): Promise<void>
}

type Files = Pick<typeof nodeFiles, 'mkdir' | 'readFile' | 'rename' | 'rm' | 'writeFile'>

/** Users beyond the limit sign in again. */
const maxInMemory = 50_000

/**
 * Creates a store in a folder, or in memory. Each value has an encryption key of its own, so that no value is
 * readable under another key: a file that is copied over another user's is unreadable.
 */
export function createTokenStore(
  folder: string | undefined,
  sessionKey: Uint8Array,
  files: Files = nodeFiles,
): TokenStore {
  if (folder === undefined) return createMemoryStore()
  const keyOf = (key: string) =>
    Buffer.from(hkdfSync('sha256', sessionKey, '', `tollgate/mcp-logins/1/${key}`, 32))
  const pathOf = (key: string) => join(folder, createHash('sha256').update(key).digest('base64url'))
  return {
    async read(key) {
      try {
        const text = unsealText(keyOf(key), await files.readFile(pathOf(key), 'utf8'))
        return text === undefined ? undefined : parseJsonObject(text)
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    },
    async write(key, value) {
      await files.mkdir(folder, { recursive: true, mode: 0o700 })
      const path = pathOf(key)
      const temporary = `${path}.${randomUUID()}`
      try {
        await files.writeFile(temporary, sealText(keyOf(key), JSON.stringify(value)), {
          mode: 0o600,
          flush: true,
        })
        await files.rename(temporary, path)
      } catch (error) {
        await files.rm(temporary, { force: true })
        throw error
      }
    },
    remove: (key) => files.rm(pathOf(key), { force: true }),
  }
}

function createMemoryStore(): TokenStore {
  const values = createLru<string, JsonObject>(maxInMemory)
  return {
    read: async (key) => values.get(key),
    write: async (key, value) => values.set(key, value),
    remove: async (key) => values.delete(key),
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
