import { nearest } from '../lib/nearest.ts'

/** Whether the URL of a database is a Postgres URL; every other valid one is the path of a SQLite file. */
export function isPostgresUrl(url: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(url)
}

/** The file of a SQLite URL. */
export function sqlitePathOf(url: string): string {
  return url.replace(/^sqlite:(?:\/\/)?/i, '').replace(/\?.*$/s, '')
}

/** Throws if a SQLite path names no file. The error names the configuration field. */
export function assertSqlitePath(path: string, field: string): void {
  if (path !== '' && !path.includes('\0') && !path.startsWith(':memory:')) return
  throw new Error(`${field} must name a file, for example sqlite:///var/lib/tollgate/tollgate.db`)
}

const schemes = ['postgres', 'postgresql', 'sqlite']

/**
 * Describes an address with an unknown scheme; undefined for a valid one. A text without a scheme is the path
 * of a SQLite file. The message contains the scheme only, because the rest may contain a password.
 */
export function urlMistake(url: string): string | undefined {
  const scheme = /^([^/\\?#:]*):/.exec(url)?.[1]
  if (scheme === undefined || isPostgresUrl(url) || /^sqlite:/i.test(url)) return undefined
  const name = scheme.toLowerCase()
  const suggestion = schemes.includes(name) ? name : nearest(name, schemes)
  const hint = suggestion === undefined ? '' : `, did you mean \`${suggestion}://\`?`
  const shown = /^[a-z][a-z0-9+.-]{0,30}$/.test(name) ? ` \`${name}:\`` : ''
  return `expected sqlite://<path> or postgres://…, unsupported scheme${shown}${hint}`
}
