import { readFileSync, statSync } from 'node:fs'
import { parseKeySet } from '../../identity/jwt/key-set.ts'
import { messageOf } from '../../lib/thrown.ts'
import { readAuthority } from '../../net/tls/dynamic-ca.ts'
import { certificateProblem, createTlsIdentity, privateKeyProblem } from '../../net/tls/server-tls.ts'
import { parseHtpasswd } from '../../policies/basic-auth/htpasswd.ts'
import type { FileContent, PemSource } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { visitStrings } from '../../schema/visit-strings.ts'
import { isCredential } from '../../upstream/credentials/credential.ts'
import { type Config, configSchema } from '../schema.ts'
import { listenersOf } from '../traffic/attachments.ts'
import { trafficSections } from '../traffic/sections.ts'
import { maxFileBytes, readProblem } from './config-file.ts'

/**
 * Reports named files that cannot be read or have invalid content, at the path of the name, and invalid
 * inline texts. Compilation reads the files again: they may change in between.
 */
export function checkNamedFiles(config: Config, report: ReportIssue): void {
  checkTexts(config, readText, report)
}

/** Reports invalid inline texts, without reading files. */
export function checkInlineTexts(config: Config, report: ReportIssue): void {
  checkTexts(config, undefined, report)
}

/** Returns the text of a file; throws if it is unreadable. */
type ReadText = (file: string) => string

/** Without `read`, files are not checked. */
function checkTexts(config: Config, read: ReadText | undefined, report: ReportIssue): void {
  visitStrings(configSchema, config, (text, shapes, path) => {
    const meta = shapes.find(({ meta }) => meta.format === 'file' || meta.holds !== undefined)?.meta
    if (meta === undefined) return
    const isFile = meta.format === 'file'
    const problem = isFile ? read && problemOf(text, meta.holds, read) : inlineProblem(text, meta.holds)
    if (problem !== undefined) report(path, problem)
  })
  checkKeyPairs(config, read, report)
}

/** Checks that certificates and keys that are valid on their own match. */
function checkKeyPairs(config: Config, read: ReadText | undefined, report: ReportIssue): void {
  const sections = trafficSections(config)
  const ofGateways = Object.entries(sections.gateways).map(([name, gateway]) => listenersOf(name, gateway))
  const listeners = [...ofGateways, [{ tls: config.llm?.tls, path: ['llm'] }]]
  for (const group of listeners) {
    for (const { tls, path } of group) {
      const [cert, key] = [tls?.cert, tls?.key].map((source) => source && textOf(source, read))
      if (cert === undefined || key === undefined) continue
      if (certificateProblem(cert) !== undefined || privateKeyProblem(key) !== undefined) continue
      try {
        createTlsIdentity({ cert, key })
        if (tls?.mode === 'dynamicCa') readAuthority({ cert, key })
      } catch (error) {
        const message = messageOf(error)
        report(sections.written([...path, 'tls']), message)
      }
    }
  }
}

const contentProblems: Record<FileContent, (text: string) => string | undefined> = {
  certificates: certificateProblem,
  privateKey: privateKeyProblem,
  credential: (text) =>
    isCredential(text.trim()) ? undefined : 'does not contain a credential: printable ASCII on one line',
  keySet: (text) =>
    parseKeySet(text) === undefined ? 'is not a JSON Web Key Set: expected {"keys": [...]}' : undefined,
  htpasswd(text) {
    const parsed = parseHtpasswd(text)
    return parsed.kind === 'invalid' ? parsed.message : undefined
  },
}

function problemOf(file: string, holds: FileContent | undefined, read: ReadText): string | undefined {
  try {
    const text = read(file)
    const problem = holds && contentProblems[holds](text)
    return problem && `${file} ${problem}`
  } catch (error) {
    return `${file} cannot be read: ${readProblem(error)}`
  }
}

function inlineProblem(text: string, holds: FileContent | undefined): string | undefined {
  return holds && contentProblems[holds](text)
}

function textOf(source: PemSource, read: ReadText | undefined): string | undefined {
  try {
    return typeof source === 'string' ? read?.(source) : source.inline
  } catch {
    // `problemOf` reports it.
    return undefined
  }
}

function readText(file: string): string {
  if (statSync(file).size > maxFileBytes) throw new Error('it is larger than 32 MiB')
  return readFileSync(file, 'utf8')
}
