import { Braces, Globe, type LucideIcon, Radio, Terminal } from 'lucide-react'
import { classNames } from '../../../components/class-names.ts'
import { Card } from '../../../components/layout/card.tsx'
import type { Transport } from '../queries.ts'
import { transportNames } from './state-badge.tsx'
import { transports } from './transport.ts'

const looks: Record<Transport, { icon: LucideIcon; text: string }> = {
  mcp: { icon: Globe, text: 'A remote server at a URL. The current transport of MCP.' },
  stdio: { icon: Terminal, text: 'A program on this machine, such as one that npx or uvx starts.' },
  sse: { icon: Radio, text: 'An older remote server with a separate event stream.' },
  openapi: { icon: Braces, text: 'An HTTP API with an OpenAPI document: each operation becomes a tool.' },
}

/** Choice of the transport of a new server. */
export function TransportChoice({
  value,
  onChange,
}: {
  value: Transport
  onChange(transport: Transport): void
}) {
  return (
    <Card title="What kind of server is it?">
      <fieldset aria-label="Transport" className="grid grid-cols-1 gap-3 sm:grid-cols-2 xl:grid-cols-4">
        {transports.map((transport) => {
          const { icon: Icon, text } = looks[transport]
          const isChosen = transport === value
          return (
            <button
              key={transport}
              type="button"
              aria-pressed={isChosen}
              onClick={() => onChange(transport)}
              className={classNames(
                'flex items-start gap-3 rounded-lg border p-3 text-left transition-colors',
                isChosen ? 'border-accent bg-accent-soft' : 'border-line hover:bg-hover',
              )}
            >
              <Icon
                className={classNames('mt-0.5 size-4 shrink-0', isChosen ? 'text-accent' : 'text-ink-faint')}
                aria-hidden
              />
              <span className="min-w-0">
                <span className="block text-sm font-medium">{transportNames[transport]}</span>
                <span className="block text-xs text-ink-soft">{text}</span>
              </span>
            </button>
          )
        })}
      </fieldset>
    </Card>
  )
}
