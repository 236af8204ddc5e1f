import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'

/** Tone of an HTTP status. 499 is a disconnect of the client. */
function statusTone(status: number): Tone {
  if (status >= 500) return 'bad'
  return status >= 400 ? 'warn' : 'good'
}

export function StatusBadge({ status }: { status: number }) {
  return <Badge tone={statusTone(status)}>{status}</Badge>
}

/** Subject of a request: the model, or the server and its tool. */
export function subjectOf({ kind, genAi, mcp, path }: LogEntry): string {
  if (kind === 'mcp' && mcp !== null) {
    const { target, item, method } = mcp
    return [target, item ?? method].filter(Boolean).join(' / ')
  }
  return genAi.requestModel ?? genAi.responseModel ?? path
}

/** Caller of a request: the name of the key or user. */
export function callerOf({ keyName, user, keyId, client }: LogEntry): string {
  return keyName ?? user ?? keyId ?? client
}

/** Reason of a failure in few words; undefined for a success. */
export function reasonOf({ refusedBy, error, incomplete }: LogEntry): string | undefined {
  return refusedBy ?? error ?? (incomplete ? 'incomplete' : undefined)
}
