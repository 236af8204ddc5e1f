import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { messageOf } from '../../lib/thrown.ts'
import type { Environment } from './environment.ts'
import { escapeReferences } from './escape-references.ts'

/**
 * Path of the default configuration file: `tollgate/config.yaml` under `$XDG_CONFIG_HOME`, otherwise under
 * `~/.config` (XDG Base Directory Specification: a relative path is ignored). Throws if neither is set.
 */
export function defaultFilePath(env: Environment, home: string): string {
  const configured = env['XDG_CONFIG_HOME'] ?? ''
  if (isAbsolute(configured)) return join(configured, 'tollgate', 'config.yaml')
  if (isAbsolute(home)) return join(home, '.config', 'tollgate', 'config.yaml')
  throw new Error('no configuration file: name one with -f FILE; there is no home folder for a default file')
}

/**
 * Creates the file, readable by this user only, unless it exists. Returns whether it was created. Throws an
 * error with the reason.
 */
export function createDefaultFile(path: string): boolean {
  if (existsSync(path)) return false
  // A question mark begins the parameters of a database URL.
  if (path.includes('?')) throw uncreatable(path, 'the name of its folder must not contain a question mark')
  try {
    makeFolder(dirname(path))
    writeWhole(path, defaultFileText(join(dirname(path), 'tollgate.db')))
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw uncreatable(path, problemOf(error), error)
  }
}

/** Writes the whole file or nothing, and never replaces a file created meanwhile, as a rename would. */
function writeWhole(path: string, text: string): void {
  const temporary = join(dirname(path), `.config-${randomUUID()}.tmp`)
  const options = { mode: 0o600, flag: 'wx', flush: true }
  try {
    writeFileSync(temporary, text, options)
    linkSync(temporary, path)
  } finally {
    if (existsSync(temporary)) rmSync(temporary)
  }
}

/** `database` is the path of the SQLite file. Double-quoted text is identical in JSON and YAML. */
function defaultFileText(database: string): string {
  const url = JSON.stringify(escapeReferences(`sqlite://${database}`, new Set()))
  return `# Configuration of Tollgate without -f FILE.
#
# Add keys, models, MCP servers and routes here; each change applies immediately. Or add them at run time through
# http://127.0.0.1:15000/api/config, which stores them in the database below. Entries of this file take precedence.

config:
  # All addresses are on this machine only.
  bindAddress: 127.0.0.1
  adminAddr: 127.0.0.1:15000
  statsAddr: 127.0.0.1:15020
  readinessAddr: 127.0.0.1:15021
  storage:
    mode: hybrid
    # The API, which only this machine reaches, may also add MCP servers that are programs on this machine.
    allowStdioTargets: true
  database:
    url: ${url}

gateways:
  # Gateway of models, MCP servers and routes that have no gateways field.
  default:
    port: 4000

llm:
  models: []
  policies:
    # Requests without a key are refused.
    apiKey:
      mode: strict
      keys: []
`
}

/**
 * Creates one folder at a time: the recursive form does not end on file systems that refuse folders silently
 * (/proc).
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  if (dirname(folder) !== folder) makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

function uncreatable(path: string, problem: string, cause?: unknown): Error {
  return new Error(`cannot create the configuration file ${path}: ${problem}; name one with -f FILE`, {
    cause,
  })
}

function problemOf(error: unknown): string {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'it is not allowed'
    case 'EROFS':
      return 'it would be on a read-only file system'
    case 'ENOSPC':
    case 'EDQUOT':
      return 'there is no space left on its disk'
    case 'ENOTDIR':
      return 'a part of its path is not a folder'
    default:
      return messageOf(error)
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
