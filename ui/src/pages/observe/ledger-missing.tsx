import { DatabaseZap } from 'lucide-react'
import { ApiError } from '../../api/client.ts'
import { CodeBlock } from '../../components/data/code-block.tsx'
import { EmptyState } from '../../components/feedback/empty-state.tsx'
import { Card } from '../../components/layout/card.tsx'

const snippet = `config:
  database:
    url: sqlite://tollgate.db
`

/** Whether an error is the refusal of a gateway without a ledger. */
export function isLedgerMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.message.includes('not configured')
}

/** In place of a page that needs the ledger: the configuration to add. */
export function LedgerMissing() {
  return (
    <Card>
      <EmptyState icon={DatabaseZap} title="This gateway has no ledger yet">
        The ledger records each LLM request and MCP call with its user, tokens, cost and decisions. Add a
        database to the configuration file and restart the gateway. SQLite needs no server.
      </EmptyState>
      <div className="mx-auto max-w-xl pb-8">
        <CodeBlock text={snippet} label="configuration" />
        <p className="mt-3 text-xs text-ink-faint">
          Prompts and responses are not stored unless config.logging.database.payloads is true. Several
          gateways can share one Postgres database.
        </p>
      </div>
    </Card>
  )
}
