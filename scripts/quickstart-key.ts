import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Variable that examples/quickstart.yaml reads its key from. */
export const keyVariable = 'TOLLGATE_QUICKSTART_KEY'

const keyForm = /^tg-[A-Za-z0-9_-]{16,}$/

/**
 * The virtual key of the quickstart, generated at the first start and stored in `quickstart.key` of the
 * folder, readable by its user only. Throws if that file contains anything else.
 */
export function quickstartKey(folder: string): string {
  const file = join(folder, 'quickstart.key')
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(file, `tg-${randomBytes(24).toString('base64url')}\n`, { flag: 'wx', mode: 0o600 })
  }
  const key = readFileSync(file, 'utf8').trim()
  if (!keyForm.test(key)) throw new Error(`${file} is not a key of the quickstart; remove it`)
  return key
}
