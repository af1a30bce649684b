// What an application does to have its spans exported; loaded before the program by `node --import`.
import { isMainThread } from 'node:worker_threads'
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'

if (isMainThread) {
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { maxQueueSize: 65_536 })] })
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  process.once(
    'beforeExit',
    () => void provider.shutdown().catch((error) => process.stderr.write(`The last spans are lost: ${error.message}\n`)),
  )
}
