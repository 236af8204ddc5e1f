import type { SourceError } from '../../config/live/live.ts'
import type { Config } from '../../config/schema.ts'
import type { LedgerStatus } from '../../ledger/ledger.ts'
import type { StorageStatus } from '../../resources/resources.ts'
import { maskText } from '../../resources/secrets/secret-text.ts'
import type { Condition } from '../../telemetry/live/conditions.ts'
import { plainTextKeys } from './counts.ts'
import { exposureProblems } from './exposure.ts'
import { parseMistakes } from './mistakes.ts'
import type { Problem } from './problem.ts'

/** Facts from which problems derive. */
export type ProblemFacts = {
  readonly config: Config | undefined
  /** Configuration of the file. */
  readonly file: object
  readonly errors: readonly SourceError[]
  readonly needsRestart: boolean
  readonly storage: StorageStatus
  readonly ledger: LedgerStatus | undefined
  readonly conditions: readonly Condition[]
  /** Data planes that do not respond. */
  readonly silentPlanes: number
}

/** Problems by severity. */
export function findProblems(facts: ProblemFacts): Problem[] {
  const problems = [
    ...configurationProblems(facts),
    ...storageProblems(facts.storage),
    ...ledgerProblems(facts.ledger),
    ...facts.conditions.map(conditionProblem),
    ...planeProblems(facts),
    ...(facts.config === undefined ? [] : exposureProblems(facts.config)),
    ...keyProblems(facts.file),
  ]
  return problems.sort((one, other) => rank(one) - rank(other))
}

function rank({ severity }: Problem): number {
  return severity === 'error' ? 0 : 1
}

function configurationProblems({ errors, needsRestart }: ProblemFacts): Problem[] {
  const problems = errors.flatMap((error) => (error.source === 'database' ? [] : [refused(error)]))
  if (!needsRestart) return problems
  const restart: Problem = {
    code: 'restart_needed',
    severity: 'warning',
    title: 'Restart needed',
    detail: 'The file has changes in `config` that are read at start. They take effect after a restart.',
    link: '/tools/configuration',
    doc: 'docs/configuration.md',
  }
  return [...problems, restart]
}

function refused({ source, message, since }: SourceError): Problem {
  const isAddress = /cannot listen on/.test(message)
  const what = {
    file: 'The file',
    namedFiles: 'A file that the configuration names',
    resources: 'The records',
  }
  const [place] = Object.entries(what).flatMap(([name, text]) => (name === source ? [text] : []))
  return {
    code: isAddress ? 'address_unavailable' : 'configuration_refused',
    severity: 'error',
    title: isAddress ? 'Address not available' : 'Configuration refused',
    detail: `${place ?? 'The configuration'} was refused. The previous configuration continues to serve. Correct the mistakes; it is read again at once.`,
    since,
    mistakes: parseMistakes(message),
    link: '/tools/configuration',
    doc: 'docs/configuration.md',
  }
}

function storageProblems({ database, stream }: StorageStatus): Problem[] {
  const problems: Problem[] = []
  if (database !== undefined && database.state !== 'connected')
    problems.push({
      code: 'database_unavailable',
      severity: 'error',
      title: 'Configuration database not available',
      detail: `${database.lastError ?? 'The first read is pending.'} The last configuration continues to serve; changes are refused until the database responds.`,
      doc: 'docs/storage.md',
    })
  if (database !== undefined && database.problems.length > 0) {
    const [first] = database.problems
    problems.push({
      code: 'records_inactive',
      severity: 'warning',
      title: 'Records not active',
      detail: `${database.problems.length} records of the database are not part of the configuration. First: ${first?.kind} ${first?.id}: ${first?.reason}`,
      doc: 'docs/storage.md',
    })
  }
  if (stream !== undefined && 'connected' in stream && stream.connected === false)
    problems.push({
      code: 'controller_unavailable',
      severity: 'error',
      title: 'Controller not available',
      detail: 'The last configuration continues to serve. Check the controller and the network policy.',
      doc: 'docs/kubernetes-operations.md',
    })
  return problems
}

function ledgerProblems(ledger: LedgerStatus | undefined): Problem[] {
  if (ledger === undefined) return []
  const problems: Problem[] = []
  if (!ledger.connected)
    problems.push({
      code: 'ledger_unavailable',
      severity: 'error',
      title: 'Ledger database not available',
      detail: `${sentence(ledger.lastError ?? 'the database does not respond')} ${ledger.queuedRows} rows wait in the spool (${ledger.spoolBytes} bytes); amounts stay exact.`,
      link: '/usage',
      doc: 'docs/ledger.md',
    })
  if (ledger.spoolError !== undefined)
    problems.push({
      code: 'ledger_spool_failed',
      severity: 'error',
      title: 'Spool of the ledger not writable',
      detail: `${ledger.spoolError} Entries are in memory only: a crash loses them. Check the folder ${ledger.spool} and its disk.`,
      doc: 'docs/ledger.md',
    })
  if (ledger.droppedDetails > 0 || ledger.droppedRows > 0)
    problems.push({
      code: 'ledger_dropped',
      severity: 'warning',
      title: 'Ledger dropped details',
      detail: `Since the start, ${ledger.droppedDetails} requests lost their details and ${ledger.droppedRows} were added up to sums, because the database was not available or too slow. Amounts are exact.`,
      doc: 'docs/ledger.md',
    })
  if (ledger.damaged > 0)
    problems.push({
      code: 'ledger_damaged',
      severity: 'warning',
      title: 'Damaged spool files',
      detail: `${ledger.damaged} batches of the spool could not be read; their requests are missing in usage.`,
      doc: 'docs/ledger.md',
    })
  return problems
}

const conditionTexts = {
  identity: {
    code: 'identity_provider_unreachable',
    severity: 'error',
    title: 'Identity provider not reachable',
    detail: (subject: string, message: string) =>
      `${subject}: ${message}. Known keys stay in use; tokens of new keys are refused. Check address, network and certificate.`,
    doc: 'docs/mcp-authentication.md',
  },
  destination: {
    code: 'target_ejected',
    severity: 'warning',
    title: 'Target ejected',
    detail: (subject: string, message: string) =>
      `${subject} is ${message}. Others receive its requests; it is tried again after the ejection.`,
    doc: 'docs/gateways-and-routes.md',
  },
  mcpTarget: {
    code: 'mcp_server_unreachable',
    severity: 'error',
    title: 'MCP server not reachable',
    detail: (subject: string, message: string) => `${subject}: ${message}`,
    doc: 'docs/mcp-targets.md',
  },
} as const

const conditionLinks = {
  identity: '/mcp/policies',
  destination: '/traffic/routes',
  mcpTarget: '/mcp/servers',
}

function conditionProblem({ kind, subject, message, since }: Condition): Problem {
  const { code, severity, title, detail, doc } = conditionTexts[kind]
  const link = kind === 'mcpTarget' ? `/mcp/servers/${encodeURIComponent(subject)}` : conditionLinks[kind]
  return {
    ...{ code, severity, title, link, doc },
    detail: detail(kind === 'identity' ? maskText(subject, 'url') : subject, message),
    since: new Date(since).toISOString(),
  }
}

function planeProblems({ silentPlanes }: ProblemFacts): Problem[] {
  if (silentPlanes === 0) return []
  return [
    {
      code: 'data_plane_silent',
      severity: 'error',
      title: 'Data plane does not respond',
      detail: `${silentPlanes} of the threads that serve traffic did not respond within 2 seconds. The log has the cause if a thread ended; it is replaced.`,
      doc: 'docs/operations.md',
    },
  ]
}

function keyProblems(file: object): Problem[] {
  const count = plainTextKeys(file)
  if (count === 0) return []
  return [
    {
      code: 'keys_in_plain_text',
      severity: 'warning',
      title: 'Keys in plain text',
      detail: `The file has the text of ${count} virtual ${count === 1 ? 'key' : 'keys'}. Rotate them: the gateway then stores a hash only.`,
      link: '/llm/keys',
      doc: 'docs/virtual-keys.md',
    },
  ]
}

/** An error message as a sentence. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`
}
