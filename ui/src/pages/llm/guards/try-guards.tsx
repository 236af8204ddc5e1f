import { useMutation } from '@tanstack/react-query'
import { FlaskConical } from 'lucide-react'
import { useState } from 'react'
import { type GuardTrial, type GuardTrialRequest, testGuards } from '../../../api/llm/guards.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { classNames } from '../../../components/class-names.ts'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'
import { messageOf } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { TextArea } from '../../../components/form/input.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatDuration } from '../../../format/time.ts'
import { labelOf } from '../../../schema-form/model/label.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { guardKindsOf, guardSchemaOf } from './guard-schema.ts'
import { type Direction, type Guard, type Guardrails, kindOf, summaryOf } from './guard-value.ts'
import { diffText } from './text-diff.ts'

const sample = 'Please send the invoice to ada@example.com or call +1 212 555 0147.'

/** Tries a text against all guards of a direction or one of them, as they are on the page, saved or not. */
export function TryGuards({ guardrails, schema }: { guardrails: Guardrails; schema: JsonSchema }) {
  const mayChange = useMayChange()
  const [text, setText] = useState(sample)
  const [direction, setDirection] = useState<Direction>('request')
  const [chosen, setChosen] = useState('all')
  const guards = guardrails[direction] ?? []
  const names = guardKindsOf(guardSchemaOf(schema, direction)).map(({ name }) => name)
  const labels = guards.map((guard) => guardLabel(guard, names))
  const trial = useMutation({
    mutationFn: ({ labels: _, ...request }: GuardTrialRequest & { labels: readonly string[] }) =>
      testGuards(request, mayChange),
  })
  const one = chosen === 'all' ? undefined : guards[Number(chosen)]
  const run = () =>
    trial.mutate({
      guards: one === undefined ? guardrails : { ...guardrails, [direction]: [one] },
      text,
      direction,
      labels: one === undefined ? labels : labels.slice(Number(chosen), Number(chosen) + 1),
    })
  return (
    <Card title="Try a text" about="Nothing is sent to a model. Guards that call a server call it.">
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
        <div className="space-y-4">
          <div className="flex flex-wrap items-end gap-3">
            <Segmented<Direction>
              label="Direction"
              value={direction}
              options={[
                { value: 'request', label: 'Request' },
                { value: 'response', label: 'Response' },
              ]}
              onChange={(next) => {
                setDirection(next)
                setChosen('all')
                trial.reset()
              }}
            />
            <div className="min-w-40 flex-1">
              <Select
                aria-label="Guards"
                value={one === undefined ? 'all' : chosen}
                options={[
                  { value: 'all', label: `All guards (${guards.length})` },
                  ...labels.map((label, index) => ({
                    value: String(index),
                    label: `${index + 1}. ${label}`.slice(0, 60),
                  })),
                ]}
                onChange={setChosen}
              />
            </div>
          </div>
          <Field label="Text">
            {(control) => (
              <TextArea
                {...control}
                rows={6}
                dir="auto"
                maxLength={100_000}
                value={text}
                onChange={(event) => setText(event.target.value)}
              />
            )}
          </Field>
          <Button
            icon={FlaskConical}
            busy={trial.isPending}
            disabled={guards.length === 0 || text === ''}
            onClick={run}
          >
            Try
          </Button>
        </div>
        <div aria-live="polite" className="min-w-0">
          {trial.isError && <Notice tone="bad" title={messageOf(trial.error)} />}
          {trial.data && trial.variables && (
            <Outcome trial={trial.data} text={trial.variables.text} labels={trial.variables.labels} />
          )}
          {trial.isIdle && (
            <p className="rounded-lg border border-dashed border-line p-6 text-center text-sm text-ink-faint">
              {guards.length === 0
                ? 'There are no guards of this direction.'
                : 'The outcome is displayed here.'}
            </p>
          )}
        </div>
      </div>
    </Card>
  )
}

function guardLabel(guard: Guard, kinds: readonly string[]): string {
  if (typeof guard['name'] === 'string') return guard['name']
  const kind = kindOf(guard, kinds)
  return `${labelOf(kind ?? 'guard')} ${summaryOf(guard, kind)}`.trim()
}

const outcomes: Record<string, { tone: Tone; label: string }> = {
  passed: { tone: 'good', label: 'passes unchanged' },
  masked: { tone: 'accent', label: 'passes with changes' },
  rejected: { tone: 'bad', label: 'is rejected' },
  failed: { tone: 'bad', label: 'a guard failed' },
}

function Outcome({
  trial,
  text,
  labels,
}: {
  trial: GuardTrial
  text: string
  /** Names of the guards in order. */
  labels: readonly string[]
}) {
  const { tone, label } = outcomes[trial.outcome] ?? { tone: 'neutral' as const, label: trial.outcome }
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-2 text-sm">
        The text <Badge tone={tone}>{label}</Badge>
        {trial.rejection && (
          <span className="text-ink-soft">
            with status {trial.rejection.status}
            {trial.rejection.body && `: ${trial.rejection.body}`}
          </span>
        )}
      </div>
      {trial.text !== undefined && <Difference before={text} after={trial.text} />}
      <ol className="divide-y divide-line rounded-lg border border-line">
        {trial.guards.map(({ name, outcome, reason, ms }, index) => (
          <li key={index} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
            <span className="w-5 text-center text-xs text-ink-faint tabular">{index + 1}</span>
            <span className="min-w-0 flex-1 truncate" dir="auto">
              {labels[index] ?? name}
              {reason && <span className="ml-2 text-xs text-ink-faint">{reason}</span>}
            </span>
            <Badge tone={toneOf(outcome)}>{outcome}</Badge>
            <span className="w-16 text-right text-xs text-ink-faint tabular">{formatDuration(ms)}</span>
          </li>
        ))}
      </ol>
    </div>
  )
}

function toneOf(outcome: string): Tone {
  if (/reject|fail|error/.test(outcome)) return 'bad'
  return /mask|modif/.test(outcome) ? 'accent' : 'good'
}

/** The text with removed and added parts marked. */
function Difference({ before, after }: { before: string; after: string }) {
  return (
    <p
      dir="auto"
      className="max-h-72 overflow-y-auto rounded-lg border border-line bg-sunken p-3 text-sm leading-relaxed break-words whitespace-pre-wrap"
    >
      {diffText(before, after).map(({ kind, text }, index) =>
        kind === 'same' ? (
          <span key={index}>{text}</span>
        ) : kind === 'removed' ? (
          <del key={index} className={classNames('rounded-sm bg-bad-soft px-0.5 text-bad')}>
            {text}
          </del>
        ) : (
          <ins key={index} className="rounded-sm bg-good-soft px-0.5 font-medium text-good no-underline">
            {text}
          </ins>
        ),
      )}
    </p>
  )
}
