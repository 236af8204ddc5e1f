import { readFileSync, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { messageOf } from '../../lib/thrown.ts'

/** Reading YAML takes some 80 times the size of the file in memory. A refusal prevents memory exhaustion. */
export const maxFileBytes = 32 * 1024 * 1024

/**
 * Reads a configuration file. Throws an error with the reason: no such file, not allowed, a directory, larger
 * than 32 MiB, not UTF-8.
 */
export function readConfigFile(file: string): string {
  try {
    refuseLarge(statSync(file).size)
    return decode(readFileSync(file))
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** As `readConfigFile`, without blocking traffic on a slow file system. */
export async function rereadConfigFile(file: string): Promise<string> {
  try {
    refuseLarge((await stat(file)).size)
    return decode(await readFile(file))
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** The size of a pipe is reported as 0, so the bytes are counted too. */
function decode(bytes: Uint8Array): string {
  refuseLarge(bytes.length)
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

function refuseLarge(bytes: number): void {
  if (bytes > maxFileBytes) throw new Error('it is larger than 32 MiB')
}

function unreadable(file: string, error: unknown): Error {
  return new Error(`cannot read the configuration file ${file}: ${readProblem(error)}`, { cause: error })
}

/** The reason why a file cannot be read, as words after "cannot be read: ". */
export function readProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'ENOENT':
      return 'there is no such file'
    case 'EACCES':
    case 'EPERM':
      return 'reading it is not allowed'
    case 'EISDIR':
      return 'it is a directory'
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'it is not UTF-8 text'
    default:
      return messageOf(error)
  }
}
