import { useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Field } from '../../../components/form/field.tsx'
import { TextArea } from '../../../components/form/input.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { useSchemaForm } from '../../../schema-form/form-state.ts'
import { isObject } from '../../../schema-form/model/value.ts'
import { SchemaForm } from '../../../schema-form/schema-form.tsx'
import { defaultsOf, formSchemaOf } from './client/tool-schema.ts'
import { cancelled, type Question } from './session.ts'

/** Requests of servers to the client, one after the other. */
export function Questions({ questions }: { questions: readonly Question[] }) {
  const [question] = questions
  if (question === undefined) return null
  return question.kind === 'elicitation' ? (
    <Elicitation key={question.id} question={question} />
  ) : (
    <Sampling key={question.id} question={question} />
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A server asks the user for input. */
function Elicitation({ question }: { question: Question }) {
  const { params, answer } = question
  const [schema] = useState(() => formSchemaOf(params['requestedSchema']))
  const form = useSchemaForm(defaultsOf(schema))
  const isUrl = params['mode'] === 'url'
  const accept = () => {
    if (isUrl) answer({ action: 'accept' })
    else if (form.check(schema)) answer({ action: 'accept', content: form.value })
  }
  return (
    <Dialog
      open
      onOpenChange={() => answer(cancelled('elicitation'))}
      title="The server asks for input"
      about={textOf(params['message']) || 'It gives no reason.'}
      footer={
        <>
          <Button onClick={() => answer({ action: 'decline' })}>Decline</Button>
          <Button tone="primary" onClick={accept}>
            {isUrl ? 'Confirm' : 'Send'}
          </Button>
        </>
      }
    >
      {isUrl ? (
        <div className="space-y-2 text-sm">
          <p>The server asks to open this address. Open it only if you expect it:</p>
          <code className="block break-all">{textOf(params['url'])}</code>
        </div>
      ) : Object.keys(schema.properties ?? {}).length === 0 ? (
        <p className="text-sm text-ink-soft">The server asks for a confirmation without further input.</p>
      ) : (
        <SchemaForm schema={schema} form={form} label="Input for the server" />
      )}
    </Dialog>
  )
}

/** A server asks the client's model for a message; here, the user is the model. */
function Sampling({ question }: { question: Question }) {
  const { params, answer } = question
  const [text, setText] = useState('')
  const { systemPrompt, messages, ...rest } = params
  const shown = Array.isArray(messages) ? messages.filter(isObject) : []
  const send = () =>
    answer({
      ...{ role: 'assistant', model: 'tollgate-console', stopReason: 'endTurn' },
      content: { type: 'text', text },
    })
  return (
    <Dialog
      open
      onOpenChange={() => answer(cancelled('sampling'))}
      title="The server asks your model"
      about="Write the answer of the model. Clients with a model send it the messages below."
      footer={
        <>
          <Button onClick={() => answer(cancelled('sampling'))}>Answer nothing</Button>
          <Button tone="primary" disabled={text.trim() === ''} onClick={send}>
            Send
          </Button>
        </>
      }
    >
      <div className="space-y-4">
        {textOf(systemPrompt) && <CodeBlock label="system prompt" text={textOf(systemPrompt)} />}
        {shown.map((message, index) => (
          <div key={index} className="rounded-lg border border-line bg-sunken px-3 py-2 text-sm">
            <div className="text-xs text-ink-faint">{textOf(message['role'])}</div>
            <bdi className="block break-words whitespace-pre-wrap">{contentText(message['content'])}</bdi>
          </div>
        ))}
        <details>
          <summary className="cursor-pointer text-xs text-ink-soft">Parameters</summary>
          <div className="mt-2">
            <CodeBlock label="parameters" text={JSON.stringify(rest, undefined, 2)} />
          </div>
        </details>
        <Field label="Answer of the model">
          {(control) => (
            <TextArea {...control} rows={4} value={text} onChange={(event) => setText(event.target.value)} />
          )}
        </Field>
      </div>
    </Dialog>
  )
}

function contentText(content: unknown): string {
  if (Array.isArray(content)) return content.map(contentText).join('\n')
  if (!isObject(content)) return ''
  return content['type'] === 'text' ? textOf(content['text']) : `(${textOf(content['type'])})`
}
